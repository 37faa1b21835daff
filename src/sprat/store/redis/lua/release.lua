-- ARGV: pool, worker, the started items as JSON (null: unknown).
local worker = worker_of(ARGV[2])
local started = set_of(cjson.decode(ARGV[3]))
local freed = release_all(ARGV[2], ARGV[1], started, false, worker and is_renewed(worker))
commit()
if freed > 0 then
  call('PUBLISH', tag .. ':leave:' .. ARGV[2], '1') -- its cancel signal
end
return freed
