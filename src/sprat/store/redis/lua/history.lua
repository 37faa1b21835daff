-- ARGV: pool, seconds.
return sums_since(ARGV[1], tonumber(ARGV[2]))
