-- ARGV: pool, worker, its incarnation ('': any), how many to claim, announced, the request (the
-- beginning of its tokens), whether it is sent again, the item to start and its token, by how many
-- values each settlement is told, and the settlements: id, token and seconds, if all are done
-- without a result, or id, token, seconds, outcome, result, error, delay.
-- Answers with a digit a settlement, whether the item was started, and the items in runs of those
-- that have most in common (handed_out), and the version of the settings if items were asked for.

local FIRST, STEP = 11, tonumber(ARGV[10])
local pool, worker_id, incarnation, n = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local announced, request, again = ARGV[5] == '1', ARGV[6], ARGV[7] == '1'

local worker = n > 0 and worker_of(worker_id)
if n > 0 and not worker then
  return no_worker(worker_id)
end
local ids = {}
if ARGV[8] ~= '' then
  ids[1] = ARGV[8]
end
for place = FIRST, #ARGV, STEP do
  ids[#ids + 1] = ARGV[place]
end
load_all(ids)
for _, id in ipairs(ids) do
  if not loaded[id] then
    return no_item(id)
  end
end

local settled = {}
for place = FIRST, #ARGV, STEP do
  local id, token, seconds = ARGV[place], ARGV[place + 1], ARGV[place + 2]
  local is_settled
  if STEP == 3 then
    is_settled = settle(id, token, seconds, 'complete', '', '')
  else
    is_settled = settle(id, token, seconds, unpack(ARGV, place + 3, place + 6))
  end
  settled[#settled + 1] = is_settled and '1' or '0'
end
local started = ARGV[8] == '' or start(ARGV[8], load(ARGV[8]), ARGV[9])
flush()

-- The items of this very request, if it was done before and only its reply was lost.
local function claimed_before()
  local found = {}
  for _, id in ipairs(held_by(worker_id, pool)) do
    local token = load(id)[TOKEN]
    if string.sub(token, 1, #request) == request then
      found[tonumber(string.sub(token, #request + 1), 16) + 1] = id
    end
  end
  local ids = {} -- without those that are gone by now
  for place = 1, n do
    ids[#ids + 1] = found[place]
  end
  return ids
end

local function claim(about)
  local chosen, new_turns, turn = choose(pool, about, n, worker[W_CAPABILITIES])
  local ready = pool_key(pool, 'ready')
  local ahead = announced and 1 or UNANNOUNCED
  for place, id in ipairs(chosen) do
    local item = loaded[id]
    happened(pool, 'w', now - item[READY_AT])
    if new_turns then
      remove(ready, ready_member(id, item))
    end
    count_as(pool, item[GROUP], 'pending', -1)
    item[STATUS] = 'claimed'
    count(item, 1)
    if item[HAS_MORE] == 1 then
      set_hold(id, item, false)
    end
    item[AHEAD] = place > 1 and ahead or 0
    item[ATTEMPTS] = item[ATTEMPTS] + (place > 1 and 0 or 1)
    item[CLAIMED_BY], item[CLAIMED_AT], item[EPOCH] = worker_id, now, item[EPOCH] + 1
    item[TOKEN] = request .. string.format('%x', place - 1)
    change(id, item)
  end
  if #chosen > 0 then
    taken[worker_id] = chosen
  end
  if new_turns then
    keep_turns(pool, about, new_turns, turn)
  elseif #chosen > 0 then
    call('ZREMRANGEBYRANK', ready, 0, #chosen - 1)
  end
  return chosen
end

-- What its worker has to know of items that are the same in all but a few things: what they
-- share, and of each its id, payload, epoch, token and birth.
local function is_alike(item, other)
  return item[MAX_RETRIES] == other[MAX_RETRIES] and item[PRIORITY] == other[PRIORITY]
    and item[TENANT] == other[TENANT] and item[GROUP] == other[GROUP] and item[KEY] == other[KEY]
    and item[GIVEN_BACK] == other[GIVEN_BACK] and item[CLAIMED_AT] == other[CLAIMED_AT]
    and item[HAS_MORE] == 0 and other[HAS_MORE] == 0
end

local function shared(id, item, attempts)
  local more = more_of(id, item)
  return {
    attempts, item[MAX_RETRIES], item[PRIORITY], item[TENANT], item[GROUP], or_none(item[KEY]),
    item[GIVEN_BACK], item[CLAIMED_AT], more[1], more[2], more[3], more[4],
    more[TRANSIENTS] or 0,
  }
end

local function handed_out(ids)
  local data = call('HMGET', tag .. ':data', unpack(ids))
  local runs, run, n, first, first_attempts = {}
  for place, id in ipairs(ids) do
    local item = loaded[id]
    local attempts = item[ATTEMPTS] + (item[AHEAD] > 0 and 1 or 0) -- as its attempt will have
    if not first or attempts ~= first_attempts or not is_alike(item, first) then
      run, n, first, first_attempts = {}, 0, item, attempts
      runs[#runs + 1] = {shared(id, item, attempts), run}
    end
    run[n + 1], run[n + 2], run[n + 3] = id, data[place], item[EPOCH]
    run[n + 4], run[n + 5] = item[TOKEN], item[CREATED_AT]
    n = n + 5
  end
  return runs
end

local about = worker and about_pool(pool)
local claimed = {}
if worker and may_claim(worker, incarnation) then
  if (worker[W_RENEWALS] or 0) > 0 or worker[W_LEASE_UNTIL] - now < worker[W_LEASE] / 2 then
    renew_lease(worker)
    keep_worker(worker_id, worker)
  end
  if again then
    claimed = claimed_before()
  end
  if #claimed == 0 and not is_paused(about) then
    promote(pool)
    claimed = claim(about)
  end
end

local runs = #claimed > 0 and handed_out(claimed) or {}
commit()
return {table.concat(settled), started and 1 or 0, runs, about and tonumber(about[VERSION] or 0)}
