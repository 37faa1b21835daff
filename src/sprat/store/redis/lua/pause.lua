-- ARGV: pool, for how long ('': until resumed), 1: a longer pause stays, reason with a sign ('': none).
local key = pool_key(ARGV[1], 'about')
call('SADD', tag .. ':pools', ARGV[1])
local until_ = ARGV[2] == '' and 'inf' or now + tonumber(ARGV[2])
local before = ARGV[3] == '1' and call('HGET', key, 'paused_until')
if before and tonumber(before) >= until_ then
  return 0
end
call('HSET', key, 'paused_until', until_)
if ARGV[4] == '' then
  call('HDEL', key, 'pause_reason')
else
  call('HSET', key, 'pause_reason', string.sub(ARGV[4], 2))
end
add_wakeup(ARGV[1], false)
commit()
return 1
