-- ARGV: pool, limit. Deletes finished items and, when these were all, the pool. 1: nothing of it is
-- left; 0: more finished items are; -1: nothing was done, it has unfinished items or live workers.
local pool, limit = ARGV[1], tonumber(ARGV[2])
local found = call('HGETALL', pool_key(pool, 'counts'))
for i = 1, #found, 2 do
  local status = string.match(found[i], '\1(.*)$')
  if not FINISHED[status] and tonumber(found[i + 1]) > 0 then
    return -1
  end
end
if call('ZCARD', pool_key(pool, 'live')) > 0 then
  return -1
end

local ids = call('LRANGE', pool_key(pool, 'done'), 0, limit - 1)
forget(pool, ids)
call('LTRIM', pool_key(pool, 'done'), #ids, -1)
for _, status in ipairs({'poisoned', 'cancelled'}) do
  limit = limit - #ids
  ids = limit > 0 and call('ZRANGE', pool_key(pool, status), 0, limit - 1) or {}
  forget(pool, ids)
end
commit()
if call('ZCARD', pool_key(pool, 'order')) > 0 then
  return 0
end

in_parts('HDEL', tag .. ':workers', call('ZRANGE', pool_key(pool, 'ended'), 0, -1))
-- `waiting` stays: its waiters are woken by the push that makes the pool anew.
for _, name in ipairs({
  'about', 'counts', 'decisions', 'delayed', 'done', 'ended', 'fresh', 'keys', 'order', 'parked',
  'poisoned', 'cancelled', 'ready', 'running', 'scale', 'scales', 'stats', 'totals',
  'turns',
}) do
  call('DEL', pool_key(pool, name))
end
call('SREM', tag .. ':pools', pool)
return 1
