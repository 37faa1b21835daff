-- ARGV: pool, group ('': all), the names of the statistics' buckets come from the time and the
-- window (in whole seconds), 1: only what needs no group. Answers with all that a pass needs.
local pool, group, window, only_free = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4] == '1'
local counts_all = group == '' and not only_free
promote(pool)
commit()

-- The ready item that was pushed first: the least of the heads of every lane and priority.
local function oldest_ready()
  local from, best, best_seq = '-', nil, nil
  while true do
    local member = call('ZRANGEBYLEX', pool_key(pool, 'ready'), from, '+', 'LIMIT', 0, 1)[1]
    if not member then
      return best and now - load(best)[READY_AT]
    end
    local lane, needed = string.match(member, '^([^\1]*\1([^\2]*)\2)')
    local rank = #lane + 8
    local seq = string.sub(member, rank + 1, rank + 14)
    if (counts_all or needed == group) and (not best or seq < best_seq) then
      best, best_seq = string.sub(member, rank + 15), seq
    end
    from = '(' .. string.sub(member, 1, rank) .. '\255'
  end
end

-- The ready items whose tenant runs as many as it may, counted lane by lane.
local function held(limits)
  local key, from, ready = pool_key(pool, 'ready'), '-', {}
  while true do
    local member = call('ZRANGEBYLEX', key, from, '+', 'LIMIT', 0, 1)[1]
    if not member then
      break
    end
    local lane, tenant, needed = string.match(member, '^(([^\1]*)\1([^\2]*)\2)')
    if tenant ~= '' and (counts_all or needed == group) then
      local n = call('ZLEXCOUNT', key, '[' .. lane, '[' .. lane .. '\255')
      ready[tenant] = (ready[tenant] or 0) + n
    end
    from = '(' .. lane .. '\255'
  end
  local found = 0
  for tenant, n in pairs(ready) do
    local limit = limits.each and limits.each[tenant] or limits.all
    if limit then
      local running = tonumber(call('HGET', pool_key(pool, 'running'), tenant) or 0)
      found = found + math.max(0, n - math.max(0, limit - running))
    end
  end
  return found
end

local function next_due()
  local key, from = pool_key(pool, 'delayed'), 0
  while true do
    local due = call('ZRANGE', key, from, from + 99)
    for _, id in ipairs(due) do
      local item = load(id)
      if counts_all or item[GROUP] == group then
        return item[READY_AT] - now
      end
    end
    if #due < 100 then
      return false
    end
    from = from + 100
  end
end

-- The items that are held because no worker knows their task: task and number in turn.
local function parked()
  local key, from, found = pool_key(pool, 'parked'), '-', {}
  while true do
    local member = call('ZRANGEBYLEX', key, from, '+', 'LIMIT', 0, 1)[1]
    if not member then
      return found
    end
    local lane, task, needed = string.match(member, '^(([^\1]*)\1([^\2]*)\2)')
    if counts_all or needed == group then
      found[#found + 1] = task
      found[#found + 1] = call('ZLEXCOUNT', key, '[' .. lane, '[' .. lane .. '\255')
    end
    from = '(' .. lane .. '\255'
  end
end

local workers = {}
for i, one in ipairs(only_free and {} or fleet(pool, group ~= '' and group)) do
  workers[i] = worker_reply(one[1], one[2])
end
local set, about = scale_set(pool, group), about_pool(pool)
local pause, reason = pause_of(pool, about)
return {
  now, call('HGETALL', pool_key(pool, 'counts')),
  about[LIMITS] and held(cjson.decode(about[LIMITS])) or 0,
  workers, oldest_ready() or false, next_due(), pause, reason, parked(),
  set[S_VERSION], set[S_UP], set[S_DOWN], set[S_FAILURES], set[S_FAILED_AT],
  sums_since(pool, window),
}
