-- ARGV: cancel or requeue, pool, the items. Answers with how many were changed.
local verb, pool = ARGV[1], ARGV[2]
local ids = {}
for place = 3, #ARGV do
  ids[place - 2] = ARGV[place]
end
load_all(ids)
for _, id in ipairs(ids) do
  if not loaded[id] then
    return no_item(id)
  end
end

local function cancel(id, item)
  if FINISHED[item[STATUS]] then
    return false
  end
  if item[STATUS] == 'claimed' then
    call('PUBLISH', tag .. ':leave:' .. item[CLAIMED_BY], '1') -- its cancel signal
    if item[TENANT] ~= '' then
      add_wakeup(pool, false)
    end
  end
  set_hold(id, item, false)
  leave(id, item)
  item[CLAIMED_BY], item[CLAIMED_AT] = '', 0
  enter(id, item, 'cancelled')
  return true
end

-- As it was pushed, but for the epoch (it only grows) and the error (kept for reading).
local function requeue(id, item)
  local status = item[STATUS]
  if status ~= 'poisoned' and status ~= 'cancelled' and status ~= 'backlog' then
    return false
  end
  leave(id, item)
  item[ATTEMPTS], item[GIVEN_BACK], item[SUSPECT], item[RESULT] = 0, 0, 0, ''
  item[CLAIMED_BY], item[CLAIMED_AT] = '', 0
  if item[HAS_MORE] == 1 then
    set_more(id, item, {more_of(id, item)[ERROR], false, false, false, false, false})
  end
  enter(id, item, 'pending')
  return true
end

local n = 0
for _, id in ipairs(ids) do
  local item = loaded[id]
  if item[POOL] == pool and (verb == 'cancel' and cancel or requeue)(id, item) then
    n = n + 1
  end
end
commit()
return n
