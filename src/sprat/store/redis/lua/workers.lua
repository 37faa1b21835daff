-- Workers: one packed row each in the hash `workers`; those that live also in the sorted set
-- `live` and in that of their pool, by age; the ended ones in `ended` of their pool.

local W_STATUS, W_POOL, W_HOST, W_PID, W_CAPABILITIES, W_STARTED_AT = 1, 2, 3, 4, 5, 6
local W_HEARTBEAT, W_LEASE, W_LEASE_UNTIL, W_INCARNATION, W_METADATA = 7, 8, 9, 10, 11
local W_REASON, W_LAUNCHED_FOR, W_ENDED_AT, W_RENEWALS = 12, 13, 14, 15 -- renewals: nil is 0
local RANK = {starting = 0, active = 1, terminating = 2, terminated = 3, lost = 3}

local function worker_of(id)
  local row = call('HGET', tag .. ':workers', id)
  return row and unpacked(row)
end

local function new_worker(status)
  return {status, false, false, false, {}, now, now, 0, now, 0, {}, false, false, false}
end

-- Write the row, and in which sets it is. `pool_before` is where it may still be.
local function keep_worker(id, worker, pool_before)
  local pool = worker[W_POOL] or ''
  if pool_before and pool_before ~= pool then
    call('ZREM', pool_key(pool_before, 'live'), id)
    call('ZREM', pool_key(pool_before, 'ended'), id)
  end
  call('HSET', tag .. ':workers', id, pack(worker))
  if RANK[worker[W_STATUS]] < 3 then
    call('ZADD', tag .. ':live', worker[W_STARTED_AT], id)
    call('ZADD', pool_key(pool, 'live'), worker[W_STARTED_AT], id)
    call('ZREM', pool_key(pool, 'ended'), id)
  else
    call('ZREM', tag .. ':live', id)
    call('ZREM', pool_key(pool, 'live'), id)
    call('ZADD', pool_key(pool, 'ended'), worker[W_ENDED_AT], id)
  end
end

local function is_current(worker, incarnation)
  return incarnation == '' or tonumber(incarnation) == worker[W_INCARNATION]
end

local function may_claim(worker, incarnation)
  return worker[W_STATUS] == 'active' and is_current(worker, incarnation)
end

local function renew_lease(worker)
  worker[W_HEARTBEAT] = now
  worker[W_LEASE_UNTIL] = now + worker[W_LEASE]
  worker[W_RENEWALS] = 0
end
