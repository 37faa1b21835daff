-- ARGV: pool. Answers with names ("group\1status") and numbers.
promote(ARGV[1])
commit()
return call('HGETALL', pool_key(ARGV[1], 'counts'))
