-- The mark: when the store last worked, and in which run of the server. Every script with this
-- part looks at it before it judges a lease. The rules are those of leases.py.
local OUTAGE_PART, QUIET_PART, MOST_RENEWALS, TOUCH = 0.75, 0.25, 3, 100000
local shortest -- no live worker has a shorter lease

-- The live leases that a gap ended or an outage shook start afresh. Answers with the shortest.
local function after_gap(marked_at, restarted)
  local live, least = {}, math.huge
  for _, id in ipairs(call('ZRANGE', tag .. ':live', 0, -1)) do
    local worker = worker_of(id)
    live[id] = worker
    least = math.min(least, worker[W_LEASE])
  end
  local gap = now - marked_at
  local is_outage = restarted or gap > OUTAGE_PART * least
  if not is_outage and gap <= QUIET_PART * least then
    return least
  end
  for id, worker in pairs(live) do
    local until_, renewals = worker[W_LEASE_UNTIL], worker[W_RENEWALS] or 0
    if until_ > marked_at and (is_outage or until_ <= now) and renewals < MOST_RENEWALS then
      local fresh = math.ceil((is_outage and 1 or QUIET_PART) * worker[W_LEASE])
      worker[W_LEASE_UNTIL] = math.max(until_, now + fresh)
      worker[W_RENEWALS] = renewals + 1
      call('HSET', tag .. ':workers', id, pack(worker))
    end
  end
  return least
end

-- A lease that was granted just now.
local function note_lease(lease)
  if lease < shortest then
    shortest = lease
    call('HSET', tag .. ':clock', 'shortest', lease)
  end
end

do
  local kept = call('HMGET', tag .. ':clock', 'mark', 'run', 'shortest')
  local marked_at, before = tonumber(kept[1] or now), kept[2] or ''
  local gap = now - marked_at
  shortest = tonumber(kept[3] or 0)
  if not kept[1] or gap > math.min(TOUCH, QUIET_PART * shortest) then
    local info = redis.pcall('INFO', 'server') -- not every server allows it: the gap is left then
    local run = type(info) == 'string' and string.match(info, 'run_id:(%x+)') or before
    local restarted = before ~= '' and run ~= before
    if restarted or gap > QUIET_PART * shortest then
      shortest = after_gap(marked_at, restarted)
    end
    call('HSET', tag .. ':clock', 'mark', now, 'run', run, 'shortest', shortest)
  end
end
