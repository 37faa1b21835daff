-- ARGV: pool. The pass that was asked for begins.
return call('HDEL', pool_key(ARGV[1], 'about'), 'asked_at')
