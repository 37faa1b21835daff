-- ARGV: pool, for how long ('': until resumed).
call('SADD', tag .. ':pools', ARGV[1])
local until_ = ARGV[2] == '' and 'inf' or now + tonumber(ARGV[2])
call('HSET', pool_key(ARGV[1], 'about'), 'paused_until', until_)
ring(ARGV[1], false)
commit()
return 1
