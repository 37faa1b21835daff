-- How the claims of a worker end that is lost, or leaves before it settles them.

local function after_crash(id, item, never_started, in_outage)
  if item[AHEAD] > 0 then
    if item[AHEAD] == UNANNOUNCED and not never_started and not in_outage then
      item[SUSPECT] = 1
    end
    return 'pending'
  end
  if in_outage then
    return after_failure(id, item, 'hand_back')
  end
  local started = item[ATTEMPTS] + item[SUSPECT]
  item[ATTEMPTS] = math.min(started, item[MAX_RETRIES])
  item[SUSPECT] = 0
  return started >= item[MAX_RETRIES] and 'poisoned' or 'pending'
end

-- Free the items of a dead worker: how many, and how many of them were poisoned. `started` is a
-- set of ids when it is known which had, false otherwise. `in_outage`: the worker was silent
-- since the store was away, and may have died of that.
local function release_all(worker_id, pool, started, reason, in_outage)
  local ids = held_by(worker_id, pool)
  local poisoned = 0
  for _, id in ipairs(ids) do
    local item = loaded[id]
    if started and started[id] then
      start(id, item, item[TOKEN])
    end
    if item[AHEAD] == 0 then
      happened(item[POOL], 'f')
    end
    if item[TENANT] ~= '' then
      add_wakeup(item[POOL], false)
    end
    local status = after_crash(id, item, started and true, in_outage)
    if status == 'poisoned' then
      poisoned = poisoned + 1
      set_error(id, item, 'worker ' .. worker_id .. ' was lost' .. (reason and ': ' .. reason or ''))
    end
    end_claim(id, item, status)
  end
  flush()
  return #ids, poisoned
end

local function hand_back_all(worker_id)
  local ids = held_by(worker_id, false)
  for _, id in ipairs(ids) do
    local item = loaded[id]
    end_claim(id, item, after_failure(id, item, 'hand_back'))
  end
  flush()
end
