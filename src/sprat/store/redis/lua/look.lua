-- Is there work for a waiter? ARGV: pool, worker ('': any), incarnation, its channel ('': it does
-- not wait yet). Returns 1: there is work; 2: the worker has to leave; 0: wait; for how long at most;
-- and the moment: a wake-up that names it is for this wait.
local LOOK_AGAIN = 1000000 -- even without a wake-up
local pool, worker_id, incarnation, channel = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local waiter = channel .. '\1' .. worker_id
local capabilities = {}
if worker_id ~= '' then
  local worker = worker_of(worker_id)
  if not worker then
    return no_worker(worker_id)
  end
  if not may_claim(worker, incarnation) then
    return {2, 0, now}
  end
  capabilities = worker[W_CAPABILITIES]
end
promote(pool)
local about = about_pool(pool)
local has_work
if worker_id == '' then
  has_work = call('ZCARD', pool_key(pool, 'ready')) > 0
else
  has_work = #choose(pool, about, 1, capabilities) > 0
end
local pause = LOOK_AGAIN
if is_paused(about) then
  has_work = false
  pause = math.min(pause, tonumber(about[PAUSED_UNTIL]) - now)
end
local due = call('ZRANGE', pool_key(pool, 'delayed'), 0, 0, 'WITHSCORES')[2]
if due then
  pause = math.min(pause, tonumber(due) - now)
end
commit()
if channel ~= '' then
  call(has_work and 'ZREM' or 'ZADD', pool_key(pool, 'waiting'), unpack(has_work and {waiter} or {now, waiter}))
end
return {has_work and 1 or 0, pause, now}
