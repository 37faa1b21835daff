-- ARGV: pool, for how long ('': until resumed), 1: a longer pause stays.
call('SADD', tag .. ':pools', ARGV[1])
local until_ = ARGV[2] == '' and 'inf' or now + tonumber(ARGV[2])
local before = ARGV[3] and call('HGET', pool_key(ARGV[1], 'about'), 'paused_until')
if before and tonumber(before) > until_ then
  return 0
end
call('HSET', pool_key(ARGV[1], 'about'), 'paused_until', until_)
ring(ARGV[1], false)
commit()
return 1
