-- Which items are next: priority, then tenants in turn, then age, for what a worker can do.

local SETTINGS, VERSION, PAUSED_UNTIL, HAS_LANES, HAS_TENANTS, TURN, LIMITS = 1, 2, 3, 4, 5, 6, 7

local function about_pool(pool)
  return call('HMGET', pool_key(pool, 'about'), 'settings', 'version', 'paused_until',
    'has_lanes', 'has_tenants', 'turn', 'limits')
end

local function is_paused(about)
  return about[PAUSED_UNTIL] and tonumber(about[PAUSED_UNTIL]) > now
end

local function may_run_ahead(item)
  return item[SUSPECT] == 0 and item[ATTEMPTS] + 1 < item[MAX_RETRIES]
end

-- A pool without lanes: the order of the sorted set is the order of claims.
local function in_order(pool, n)
  local members = call('ZRANGE', pool_key(pool, 'ready'), 0, n - 1)
  local ids = {}
  for i, member in ipairs(members) do
    ids[i] = string.sub(member, 25) -- after two separators, 8 digits and 14 digits
  end
  load_all(ids)
  for i = 2, #ids do
    if not may_run_ahead(loaded[ids[i]]) then
      ids = {unpack(ids, 1, i - 1)}
      break
    end
  end
  return ids
end

-- Up to n ids, tenants in turn. `turns` is what is to be kept if they are really taken. Its
-- functions are inside of it: only calls for pools with lanes have to make them.
local function in_turn(pool, about, n, capabilities)
  local function head(ready, from, lane)
    local member = call('ZRANGEBYLEX', ready, from, '[' .. lane .. '\255', 'LIMIT', 0, 1)[1]
    if not member then
      return nil
    end
    local length = #lane
    return {
      member = member,
      rank = string.sub(member, length + 1, length + 8),
      seq = string.sub(member, length + 9, length + 22),
      id = string.sub(member, length + 23),
    }
  end

  -- The head of every lane that has work for these groups, by hopping from tenant to tenant: the
  -- groups and priorities of other workers cost nothing.
  local function heads_of(ready, groups)
    local heads = {}
    local from = '-'
    while true do
      local member = call('ZRANGEBYLEX', ready, from, '+', 'LIMIT', 0, 1)[1]
      if not member then
        return heads
      end
      local tenant = string.match(member, '^([^\1]*)\1')
      for group in pairs(groups) do
        local lane = tenant .. '\1' .. group .. '\2'
        local first = head(ready, '[' .. lane, lane)
        if first then
          first.lane, first.tenant = lane, tenant
          heads[#heads + 1] = first
        end
      end
      from = '(' .. tenant .. '\1\255'
    end
  end

  local function dict(pairs_)
    local found = {}
    for i = 1, #pairs_, 2 do
      found[pairs_[i]] = tonumber(pairs_[i + 1])
    end
    return found
  end

  local function limit_of(limits, tenant)
    local own = limits.each and limits.each[tenant]
    return own or limits.all
  end

  local groups = {[''] = true}
  for _, capability in ipairs(capabilities) do
    groups[capability] = true
  end
  local turns = about[HAS_TENANTS] and dict(call('HGETALL', pool_key(pool, 'turns'))) or {}
  local limits = about[LIMITS] and cjson.decode(about[LIMITS])
  local running = limits and dict(call('HGETALL', pool_key(pool, 'running'))) or {}
  local turn = tonumber(about[TURN] or 0)
  local ready = pool_key(pool, 'ready')
  local heads = heads_of(ready, groups)
  local ids, new_turns = {}, {}

  local function has_room(tenant)
    local limit = limits and tenant ~= '' and limit_of(limits, tenant)
    return not limit or (running[tenant] or 0) < limit
  end

  local function is_before(one, other)
    if one.rank ~= other.rank then
      return one.rank < other.rank
    end
    local mine, theirs = turns[one.tenant] or 0, turns[other.tenant] or 0
    if mine ~= theirs then
      return mine < theirs
    end
    return one.seq < other.seq
  end

  while #ids < n do
    local best
    for place, candidate in ipairs(heads) do
      if has_room(candidate.tenant) and (not best or is_before(candidate, heads[best])) then
        best = place
      end
    end
    local chosen = best and heads[best]
    if not chosen or (#ids > 0 and not may_run_ahead(load(chosen.id))) then
      break
    end
    load(chosen.id)
    ids[#ids + 1] = chosen.id
    turn = turn + 1
    turns[chosen.tenant] = turn
    new_turns[chosen.tenant] = turn
    running[chosen.tenant] = (running[chosen.tenant] or 0) + 1
    local follower = head(ready, '(' .. chosen.member, chosen.lane)
    if follower then
      follower.lane, follower.tenant = chosen.lane, chosen.tenant
      heads[best] = follower
    else
      table.remove(heads, best)
    end
  end
  return ids, new_turns, turn
end

local function choose(pool, about, n, capabilities)
  if about[HAS_LANES] then
    return in_turn(pool, about, n, capabilities)
  end
  return in_order(pool, n)
end

local function keep_turns(pool, about, new_turns, turn)
  if not about[HAS_TENANTS] or not next(new_turns) then
    return
  end
  for tenant, last in pairs(new_turns) do
    call('HSET', pool_key(pool, 'turns'), tenant, last)
  end
  call('HSET', pool_key(pool, 'about'), 'turn', turn)
end
