-- ARGV: workers that their parent process sees alive. Answers with how many of them live.
local n = 0
for _, id in ipairs(ARGV) do
  local worker = worker_of(id)
  if worker and RANK[worker[W_STATUS]] < 3 then
    renew_lease(worker)
    call('HSET', tag .. ':workers', id, pack(worker))
    n = n + 1
  end
end
return n
