-- Items that are held until a worker knows their task: side by side in the sorted set `parked`
-- without scores, by task and group, so that each lane of them can be counted without a visit.

-- Hold a pending item, and keep why; or hold it no more (false).
local function set_hold(id, item, reason)
  local more = more_of(id, item)
  if not reason and not more[HOLD] then
    return
  end
  more[HOLD] = reason
  set_more(id, item, more)
  local task = string.match(call('HGET', tag .. ':data', id), '^@([^\n]*)\n') or ''
  local member = task .. '\1' .. item[GROUP] .. '\2' .. id
  if reason then
    call('ZADD', pool_key(item[POOL], 'parked'), 0, member)
  else
    call('ZREM', pool_key(item[POOL], 'parked'), member)
  end
end
