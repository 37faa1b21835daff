-- ARGV: pool, the most workers, request. 1 for the caller that has to start a scaling pass.
local CHECK = 10000000 -- a pass that was asked for has begun by then, or its starter died
local pool, key = ARGV[1], pool_key(ARGV[1], 'about')
promote(pool)
commit()
local found = call('HMGET', key, 'asked_at', 'asked_by', 'awaited_at')
if found[1] and now - tonumber(found[1]) < CHECK then
  return found[2] == ARGV[3] and 1 or 0
end
local starting, active, idle = 0, 0, 0
for _, one in ipairs(fleet(pool, false)) do
  local status = one[2][W_STATUS]
  if status == 'starting' then
    starting = starting + 1
  elseif status == 'active' then
    active = active + 1
    local is_suspended = one[2][W_METADATA].suspended == 'true'
    idle = idle + (not is_suspended and is_idle(one[1]) and 1 or 0)
  end
end
if starting + active >= tonumber(ARGV[2]) then
  return 0
end
local waiting = call('ZCARD', pool_key(pool, 'ready'))
if waiting == 0 and starting + active == 0 then
  -- No worker is there, and all work is delayed: a process has to wait for the first of it.
  local due = tonumber(call('ZRANGE', pool_key(pool, 'delayed'), 0, 0, 'WITHSCORES')[2])
  local awaited = tonumber(found[3] or 0)
  if not due or (now < awaited and awaited <= due) then
    return 0
  end
  call('HSET', key, 'awaited_at', due)
elseif waiting <= starting + idle then
  return 0
end
call('HSET', key, 'asked_at', now, 'asked_by', ARGV[3])
return 1
