-- ARGV: worker, incarnation, status, reason with a sign ('': none), started items as JSON.
local id, status = ARGV[1], ARGV[3]
local reason = ARGV[4] ~= '' and string.sub(ARGV[4], 2)
local worker = worker_of(id)
if not worker then
  return no_worker(id)
end
if not is_current(worker, ARGV[2]) then
  return 0
end
if worker[W_STATUS] == status then
  return 1
end
if RANK[status] <= RANK[worker[W_STATUS]] then
  return 0
end
if status == 'terminating' then
  drain(id, worker, reason)
elseif status == 'lost' then
  lose(id, worker, reason, set_of(cjson.decode(ARGV[5])))
else
  move(id, worker, status, reason)
  keep_worker(id, worker)
  if status == 'terminated' then
    hand_back_all(id)
  end
end
commit()
return 1
