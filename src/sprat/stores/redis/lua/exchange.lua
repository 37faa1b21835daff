-- ARGV: pool, worker, its incarnation ('': any), how many to claim, announced, the request (the
-- beginning of its tokens), whether it is sent again, the item to start and its token, then each
-- settlement as id, token, outcome, result, error, delay, seconds.
-- Answers with a digit a settlement, whether the item was started, and the items.

local FIRST, WIDTH = 10, 7
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
for place = FIRST, #ARGV, WIDTH do
  ids[#ids + 1] = ARGV[place]
end
load_all(ids)
for _, id in ipairs(ids) do
  if not loaded[id] then
    return no_item(id)
  end
end

local settled = {}
for place = FIRST, #ARGV, WIDTH do
  local done = settle(unpack(ARGV, place, place + WIDTH - 1))
  settled[#settled + 1] = done and '1' or '0'
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
  local ready, held = pool_key(pool, 'ready'), tag .. ':held'
  local holder = worker_id .. '\1' .. pool .. '\1'
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
    item[AHEAD] = place > 1 and ahead or 0
    item[ATTEMPTS] = item[ATTEMPTS] + (place > 1 and 0 or 1)
    item[CLAIMED_BY], item[CLAIMED_AT], item[EPOCH] = worker_id, now, item[EPOCH] + 1
    item[TOKEN] = request .. string.format('%x', place - 1)
    add(held, 0, holder .. id)
    change(id)
  end
  if new_turns then
    keep_turns(pool, about, new_turns, turn)
  elseif #chosen > 0 then
    call('ZREMRANGEBYRANK', ready, 0, #chosen - 1)
  end
  return chosen
end

-- What its worker has to know of an item: the rest is the same for all.
local function handed_out(id, item, data)
  local attempts = item[ATTEMPTS] + (item[AHEAD] > 0 and 1 or 0) -- as its attempt will have
  local reply = {
    id, data, attempts, item[MAX_RETRIES], item[PRIORITY], item[TENANT], item[GROUP], item[KEY],
    item[EPOCH], item[TOKEN], item[CREATED_AT], item[CLAIMED_AT], item[GIVEN_BACK],
  }
  if item[HAS_MORE] then
    local more = more_of(id, item)
    for place = 1, 4 do
      reply[13 + place] = more[place]
    end
  end
  return reply
end

local claimed = {}
if worker and may_claim(worker, incarnation) then
  if worker[W_LEASE_UNTIL] - now < worker[W_LEASE] / 2 then
    renew_lease(worker)
    keep_worker(worker_id, worker)
  end
  if again then
    claimed = claimed_before()
  end
  if #claimed == 0 then
    local about = about_pool(pool)
    if not is_paused(about) then
      promote(pool)
      claimed = claim(about)
    end
  end
end

local items = {}
if #claimed > 0 then
  local data = call('HMGET', tag .. ':data', unpack(claimed))
  for place, id in ipairs(claimed) do
    items[place] = handed_out(id, loaded[id], data[place])
  end
end
commit()
return {table.concat(settled), started and 1 or 0, items}
