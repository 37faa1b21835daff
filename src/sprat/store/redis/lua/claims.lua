-- How claims end. The verdicts are those of retry_rules.py.

local UNANNOUNCED, GIVE_BACKS, MAX_TRANSIENT = 2, 1000, 10
local MOST_GIVEN_BACK = 65535 -- a row has no room for more

local function end_claim(id, item, status, delay)
  leave(id, item)
  if status == 'pending' then
    item[CLAIMED_BY] = ''
    item[CLAIMED_AT] = 0
  end
  enter(id, item, status, status == 'pending' and delay or 0)
end

local function after_failure(id, item, outcome)
  -- Whether this end costs no attempt. A transient failure that costs none is counted.
  local function gives_back()
    if outcome ~= 'transient' then
      return outcome == 'park' or (outcome == 'hand_back' and item[GIVEN_BACK] < GIVE_BACKS)
    end
    local settings = call('HGET', pool_key(item[POOL], 'about'), 'settings')
    local most = settings and cjson.decode(settings).max_transient or MAX_TRANSIENT
    local more = more_of(id, item)
    local n = more[TRANSIENTS] or 0
    if most ~= cjson.null and n >= most then
      return false
    end
    more[TRANSIENTS] = n + 1
    set_more(id, item, more)
    return true
  end

  local ahead = item[AHEAD] > 0
  local started = item[ATTEMPTS] + (ahead and 1 or 0)
  if gives_back() then
    item[ATTEMPTS] = ahead and item[ATTEMPTS] or math.max(0, started - 1)
    item[GIVEN_BACK] = math.min(MOST_GIVEN_BACK, item[GIVEN_BACK] + 1)
    return 'pending'
  end
  item[ATTEMPTS] = started
  item[SUSPECT] = 0
  if outcome == 'poison' or started >= item[MAX_RETRIES] then
    return 'poisoned'
  end
  return 'pending'
end

local function holds(item, token)
  return token ~= '' and item[STATUS] == 'claimed' and item[TOKEN] == token
end

local function start(id, item, token)
  if not holds(item, token) then
    return false
  end
  if item[AHEAD] > 0 then
    item[AHEAD] = 0
    item[ATTEMPTS] = item[ATTEMPTS] + 1
    item[CLAIMED_AT] = now
    change(id, item)
  end
  return true
end

local function is_repeated(item, token, outcome, result)
  if token == '' or item[LAST_TOKEN] ~= token or item[LAST_OUTCOME] ~= outcome then
    return false
  end
  return outcome ~= 'complete' or item[RESULT] == result
end

-- Results and delays come as in exchange.lua: '' is none, errors have a sign in front.
local function settle(id, token, seconds, outcome, result, error_text, delay)
  local item = load(id)
  if not holds(item, token) then
    return is_repeated(item, token, outcome, result)
  end
  local pool = item[POOL]
  if item[TENANT] ~= '' then
    add_wakeup(pool, false) -- another item of this tenant may run now
  end
  local is_run = outcome ~= 'hand_back' and outcome ~= 'park'
  if is_run then
    happened(pool, 'r', seconds ~= '' and tonumber(seconds) or now - item[CLAIMED_AT])
    happened(pool, outcome == 'complete' and 'd' or 'f')
  end
  item[LAST_TOKEN], item[LAST_OUTCOME] = token, outcome
  if outcome == 'complete' then
    item[ATTEMPTS] = item[ATTEMPTS] + (item[AHEAD] > 0 and 1 or 0)
    item[SUSPECT] = 0
    item[RESULT] = result
    set_error(id, item, false)
    end_claim(id, item, 'done')
    return true
  end
  if is_run and error_text ~= '' then
    set_error(id, item, string.sub(error_text, 2))
  end
  end_claim(id, item, after_failure(id, item, outcome), tonumber(delay))
  if outcome == 'park' then
    set_hold(id, item, string.sub(error_text, 2))
  end
  return true
end

-- The ids of the items that a worker holds (in one pool, or false for all).
local function held_by(worker_id, pool)
  local held = call('SMEMBERS', held_key(worker_id))
  load_all(held)
  local ids = {}
  for _, id in ipairs(held) do
    if not pool or loaded[id][POOL] == pool then
      ids[#ids + 1] = id
    end
  end
  return ids
end
