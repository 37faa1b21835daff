-- ARGV: request, version, the decision as JSON: pool, group, direction, launch (fresh worker
-- ids), drain, reason, counted_as, max_workers, deadline, capabilities; and the rest of it as text.
-- Answers with version, time, launched and drained; nil if it may not be.
local asked = cjson.decode(ARGV[3])
local pool, group = asked.pool, given(asked.group)
local set = scale_set(pool, group)
if set[S_REQUEST] == ARGV[1] then -- done before, and only its reply was lost
  for _, row in ipairs(call('LRANGE', pool_key(pool, 'decisions'), 0, 99)) do
    local kept = unpacked(row)
    if kept[7] == ARGV[1] then
      return {kept[1], kept[2], kept[4], kept[5]}
    end
  end
end
if set[S_VERSION] ~= tonumber(ARGV[2]) then
  return false
end
if #asked.launch > 0 then
  reap(pool, '') -- or a worker that is not counted now could come back later
  set = scale_set(pool, group)
  local counted = 0
  for _, one in ipairs(fleet(pool, group)) do
    if one[2][W_STATUS] ~= 'terminating' then
      counted = counted + 1
    end
  end
  if counted + #asked.launch > asked.max_workers then
    commit()
    return false
  end
end
for _, id in ipairs(asked.launch) do
  local worker = new_worker('starting')
  worker[W_POOL], worker[W_LAUNCHED_FOR] = pool, group
  worker[W_CAPABILITIES] = asked.capabilities
  worker[W_LEASE], worker[W_LEASE_UNTIL] = asked.deadline, now + asked.deadline
  note_lease(asked.deadline)
  keep_worker(id, worker)
end
local drained = {}
for _, id in ipairs(asked.drain) do
  local worker = worker_of(id)
  if worker and RANK[worker[W_STATUS]] < 2 then
    drain(id, worker, asked.reason)
    drained[#drained + 1] = id
  end
end
set[S_VERSION], set[S_REQUEST] = set[S_VERSION] + 1, ARGV[1]
if asked.direction == 'up' then
  set[S_UP] = now
elseif asked.direction == 'down' then
  set[S_DOWN] = now
end
keep_scale_set(pool, group, set)
local decisions = pool_key(pool, 'decisions')
call('LPUSH', decisions,
  pack({set[S_VERSION], now, group or '', asked.launch, drained, ARGV[4], ARGV[1]}))
call('LTRIM', decisions, 0, 9999)
call('HINCRBY', pool_key(pool, 'totals'), asked.direction .. ':' .. asked.counted_as, 1)
commit()
return {set[S_VERSION], now, asked.launch, drained}
