-- ARGV: the registration as JSON: worker, pool, host, pid, capabilities, lease, metadata (names
-- and JSON texts), reserved. Answers with the worker, and whether it was too late.
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
release_all(id, false, false, 'it registered again')
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
worker[W_METADATA] = {}
for i = 1, #asked.metadata, 2 do
  worker[W_METADATA][asked.metadata[i]] = asked.metadata[i + 1]
end
worker[W_STARTED_AT] = now
renew_lease(worker)
move(id, worker, 'active', false)
worker[W_REASON] = false
keep_worker(id, worker, pool_before)
call('PUBLISH', tag .. ':leave:' .. id, '1') -- its old incarnation may be asleep
commit()
return {0, worker_reply(id, worker)}
