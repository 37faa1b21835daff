-- ARGV: the registration as JSON: worker, pool, host, pid, capabilities, lease, metadata (names
-- and JSON texts), reserved, tasks. Answers with the worker, and whether it was too late.

-- Items of the pool that are held for one of these tasks are ready.
local function free_parked(pool, tasks)
  promote(pool)
  for _, task in ipairs(tasks) do
    local from, ids = '[' .. task .. '\1', {}
    for i, member in ipairs(call('ZRANGEBYLEX', pool_key(pool, 'parked'), from, from .. '\255')) do
      ids[i] = string.match(member, '\2(.*)$')
    end
    load_all(ids)
    for _, id in ipairs(ids) do
      local item = loaded[id]
      set_hold(id, item, false)
      if item[DELAYED] == 1 then
        leave(id, item)
        enter(id, item, 'pending')
      end
    end
  end
end

local asked = cjson.decode(ARGV[1])
local id, reserved = asked.worker, asked.reserved
local worker = worker_of(id)
if reserved and not worker then
  return no_worker(id)
end
if reserved and worker[W_STATUS] ~= 'starting' then
  return {1, worker_reply(id, worker)} -- registered before, or given up
end
worker = worker or new_worker('active')
local pool_before = worker[W_POOL] or ''
release_all(id, false, false, 'it registered again', is_renewed(worker))
worker[W_INCARNATION] = worker[W_INCARNATION] + 1
worker[W_POOL] = given(asked.pool) or worker[W_POOL]
worker[W_HOST], worker[W_PID] = given(asked.host), given(asked.pid)
local capabilities, seen = {}, {}
for _, list in ipairs({reserved and worker[W_CAPABILITIES] or {}, asked.capabilities}) do
  for _, capability in ipairs(list) do
    if not seen[capability] then
      seen[capability] = true
      capabilities[#capabilities + 1] = capability
    end
  end
end
worker[W_CAPABILITIES] = capabilities
worker[W_LEASE] = asked.lease
note_lease(asked.lease)
worker[W_METADATA] = {}
for i = 1, #asked.metadata, 2 do
  worker[W_METADATA][asked.metadata[i]] = asked.metadata[i + 1]
end
worker[W_STARTED_AT] = now
renew_lease(worker)
move(id, worker, 'active', false)
worker[W_REASON] = false
keep_worker(id, worker, pool_before)
if #asked.tasks > 0 and worker[W_POOL] then
  free_parked(worker[W_POOL], asked.tasks)
end
call('PUBLISH', tag .. ':leave:' .. id, '1') -- its old incarnation may be asleep
commit()
return {0, worker_reply(id, worker)}
