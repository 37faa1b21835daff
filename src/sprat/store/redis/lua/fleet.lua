-- The fleet of a pool: its scale sets, and how workers come, leave and are lost.

local NEVER_REGISTERED = 'launched, but did not register in time'
local LEASE_ENDED = 'its lease ended without a heartbeat'

local function has_capability(worker, wanted)
  for _, capability in ipairs(worker[W_CAPABILITIES]) do
    if capability == wanted then
      return true
    end
  end
  return false
end

-- The scaling state of a pool or of one group of it: version, last up, last down, failed
-- launches in a row, the last of them. `version` 0 is one that is not kept.
local S_VERSION, S_UP, S_DOWN, S_FAILURES, S_FAILED_AT, S_REQUEST = 1, 2, 3, 4, 5, 6

local function scale_set(pool, group)
  local row = call('HGET', pool_key(pool, 'scales'), group or '')
  return row and unpacked(row) or {0, false, false, 0, false, false}
end

local function keep_scale_set(pool, group, set)
  if set[S_VERSION] > 0 then
    call('HSET', pool_key(pool, 'scales'), group or '', pack(set))
  end
end

-- The worker's next status; `keep_worker` is the caller's.
local function move(id, worker, status, reason)
  if worker[W_STATUS] == 'starting' and status == 'active' then
    local set = scale_set(worker[W_POOL] or '', worker[W_LAUNCHED_FOR])
    if set[S_FAILURES] > 0 then
      set[S_FAILURES] = 0
      keep_scale_set(worker[W_POOL] or '', worker[W_LAUNCHED_FOR], set)
    end
  end
  worker[W_STATUS] = status
  worker[W_REASON] = reason or worker[W_REASON]
  worker[W_ENDED_AT] = RANK[status] == 3 and now
  if status ~= 'active' then
    call('PUBLISH', tag .. ':leave:' .. id, '1') -- it may be asleep
  end
end

local function drain(id, worker, reason)
  move(id, worker, worker[W_STATUS] == 'starting' and 'terminated' or 'terminating', reason)
  keep_worker(id, worker)
end

-- Whether it gave no sign of life since the store was away.
local function is_renewed(worker)
  return (worker[W_RENEWALS] or 0) > 0
end

local function lose(id, worker, reason, started)
  if worker[W_STATUS] == 'starting' and worker[W_POOL] then
    local set = scale_set(worker[W_POOL], worker[W_LAUNCHED_FOR])
    if set[S_FAILED_AT] ~= now then -- those that expire in one step have one cause
      set[S_FAILURES] = set[S_FAILURES] + 1
      set[S_FAILED_AT] = now
      keep_scale_set(worker[W_POOL], worker[W_LAUNCHED_FOR], set)
    end
  end
  move(id, worker, 'lost', reason)
  keep_worker(id, worker)
  return release_all(id, false, started, reason, is_renewed(worker))
end

local function why_stale(worker, threshold, reason)
  if worker[W_STATUS] == 'starting' then
    return worker[W_LEASE_UNTIL] <= now and NEVER_REGISTERED
  end
  if threshold == '' then
    return worker[W_LEASE_UNTIL] <= now and LEASE_ENDED
  end
  return now - worker[W_HEARTBEAT] > tonumber(threshold) and reason
end

-- Mark dead workers lost, oldest first. Returns them, those that never came, the number of items
-- released, and of items poisoned.
local function reap(pool, threshold, why)
  local workers, expired, released, poisoned = {}, {}, 0, 0
  for _, id in ipairs(call('ZRANGE', pool and pool_key(pool, 'live') or tag .. ':live', 0, -1)) do
    local worker = worker_of(id)
    local reason = why_stale(worker, threshold, why)
    if reason then
      local into = worker[W_STATUS] == 'starting' and expired or workers
      into[#into + 1] = id
      local freed, spent = lose(id, worker, reason, false)
      released, poisoned = released + freed, poisoned + spent
    end
  end
  return workers, expired, released, poisoned
end

-- The live workers of a scale set whose lease has not ended, oldest first.
local function fleet(pool, group)
  local found = {}
  for _, id in ipairs(call('ZRANGE', pool_key(pool, 'live'), 0, -1)) do
    local worker = worker_of(id)
    if worker[W_LEASE_UNTIL] > now and (not group or has_capability(worker, group)) then
      found[#found + 1] = {id, worker}
    end
  end
  return found
end

local function is_idle(id)
  return call('EXISTS', held_key(id)) == 0
end

-- The running item first, then those claimed ahead.
local function current_task(ids)
  local best
  for _, id in ipairs(ids) do
    local item = loaded[id]
    local rank = string.format('%d%020d%020d', item[AHEAD], item[CLAIMED_AT], item[SEQ])
    if not best or rank < best.rank then
      best = {rank = rank, id = id}
    end
  end
  return best and best.id or false
end

-- The worker in the order of the fields of WorkerRecord; metadata as names and JSON texts.
local function worker_reply(id, worker)
  local held = held_by(id, false)
  local metadata = {}
  for name, text in pairs(worker[W_METADATA]) do
    metadata[#metadata + 1] = name
    metadata[#metadata + 1] = text
  end
  return {
    id, worker[W_STATUS], worker[W_POOL], worker[W_HOST], worker[W_PID], worker[W_CAPABILITIES],
    worker[W_STARTED_AT], worker[W_HEARTBEAT], worker[W_LEASE], worker[W_LEASE_UNTIL],
    worker[W_INCARNATION], current_task(held), #held, metadata, worker[W_REASON],
    worker[W_RENEWALS] or 0,
  }
end

local function set_of(list)
  if not list or list == cjson.null then
    return false
  end
  local found = {}
  for _, one in ipairs(list) do
    found[one] = true
  end
  return found
end

local function given(value)
  return value ~= cjson.null and value or false
end
