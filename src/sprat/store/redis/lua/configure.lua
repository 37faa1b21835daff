-- ARGV: pool, settings, version ('': any), the tenants' limits as JSON ('': none), request.
-- True also for the repetition of a change whose reply was lost.
local key = pool_key(ARGV[1], 'about')
local found = call('HMGET', key, 'version', 'configured_by')
local version = tonumber(found[1] or 0)
if found[2] == ARGV[5] then
  return 1
end
if ARGV[3] ~= '' and tonumber(ARGV[3]) ~= version then
  return 0
end
call('SADD', tag .. ':pools', ARGV[1])
call('HSET', key, 'settings', ARGV[2], 'version', version + 1, 'configured_by', ARGV[5])
if ARGV[4] == '' then
  call('HDEL', key, 'limits')
else
  call('HSET', key, 'limits', ARGV[4])
end
add_wakeup(ARGV[1], false)
commit()
return 1
