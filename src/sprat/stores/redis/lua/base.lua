-- The beginning of every script: the keys, the clock, the items, and what is written at the end.
-- All keys of a store begin with KEYS[1], which carries its hash tag. Moments and durations are
-- whole microseconds: a number that leaves a script loses its fraction.

local tag = KEYS[1]
local call = redis.call
local pack, unpacked = cmsgpack.pack, cmsgpack.unpack

local function inner(table_, name)
  local found = table_[name]
  if not found then
    found = {}
    table_[name] = found
  end
  return found
end

local pool_keys = {} -- made once a call: a batch asks for the same ones again and again
local function pool_key(pool, name)
  local of_pool = inner(pool_keys, pool)
  local key = of_pool[name]
  if not key then
    key = tag .. ':pool:' .. pool .. ':' .. name
    of_pool[name] = key
  end
  return key
end

-- A call with more values than Lua passes at once.
local function in_parts(command, key, values)
  for i = 1, #values, 1000 do
    call(command, key, unpack(values, i, math.min(i + 999, #values)))
  end
end

-- The server's time, except that it does not go back (by more than a second) when that does.
local function read_clock()
  local time = call('TIME')
  local raw = time[1] * 1000000 + time[2]
  local kept = call('HMGET', tag .. ':clock', 'seen', 'ahead')
  local seen, ahead = tonumber(kept[1] or 0), tonumber(kept[2] or 0)
  if raw < seen then
    ahead = ahead + seen - raw
  end
  if raw < seen or raw > seen + 1000000 then
    call('HSET', tag .. ':clock', 'seen', raw, 'ahead', ahead)
  end
  return raw + ahead
end

local now = read_clock()

-- An item is one packed row in the hash `items`; its payload is in `data`, and what few items
-- have (error, checkpoint, progress, note) in `more`. False stands for None.
local POOL, SEQ, STATUS, ATTEMPTS, MAX_RETRIES, PRIORITY, TENANT, GROUP = 1, 2, 3, 4, 5, 6, 7, 8
local KEY, CREATED_AT, READY_AT, DELAYED, EPOCH, TOKEN, AHEAD, SUSPECT = 9, 10, 11, 12, 13, 14, 15, 16
local GIVEN_BACK, CLAIMED_BY, CLAIMED_AT, FINISHED_AT = 17, 18, 19, 20
local LAST_TOKEN, LAST_OUTCOME, RESULT, HAS_MORE = 21, 22, 23, 24
local ERROR, CHECKPOINT, PROGRESS, NOTE = 1, 2, 3, 4
local FINISHED = {done = true, poisoned = true, cancelled = true}

local loaded, changed, is_changed = {}, {}, {}
local counts, stats, rings, added, removed, done = {}, {}, {}, {}, {}, {}

local function load_all(ids)
  for i = 1, #ids, 1000 do
    local last = math.min(i + 999, #ids)
    local rows = call('HMGET', tag .. ':items', unpack(ids, i, last))
    for j = i, last do
      local id = ids[j]
      if loaded[id] == nil then
        local row = rows[j - i + 1]
        loaded[id] = row and unpacked(row)
      end
    end
  end
end

-- The item, or false.
local function load(id)
  if loaded[id] == nil then
    load_all({id})
  end
  return loaded[id]
end

local function change(id)
  if not is_changed[id] then
    is_changed[id] = true
    changed[#changed + 1] = id
  end
end

local function more_of(id, item)
  local row = item[HAS_MORE] and call('HGET', tag .. ':more', id)
  return row and unpacked(row) or {false, false, false, false}
end

local function set_more(id, item, more)
  item[HAS_MORE] = (more[1] or more[2] or more[3] or more[4]) and true or false
  if item[HAS_MORE] then
    call('HSET', tag .. ':more', id, pack(more))
  else
    call('HDEL', tag .. ':more', id)
  end
  change(id)
end

local function set_error(id, item, text)
  if text or item[HAS_MORE] then
    local more = more_of(id, item)
    more[ERROR] = text
    set_more(id, item, more)
  end
end

-- Additions to and removals from sorted sets, done together by `flush`.
local function add(key, score, member)
  local values = inner(added, key)
  local n = #values
  values[n + 1], values[n + 2] = score, member
end

local function remove(key, member)
  local values = inner(removed, key)
  values[#values + 1] = member
end

local function flush()
  for key, members in pairs(removed) do
    in_parts('ZREM', key, members)
  end
  for key, values in pairs(added) do
    in_parts('ZADD', key, values)
  end
  added, removed = {}, {}
end

local function count_as(pool, group, status, n)
  local of_group = inner(inner(counts, pool), group)
  of_group[status] = (of_group[status] or 0) + n
end

local function count(item, n)
  local pool, status = item[POOL], item[STATUS]
  count_as(pool, item[GROUP], status, n)
  if item[DELAYED] then
    count_as(pool, item[GROUP], 'delayed', n)
  end
  if status == 'claimed' and item[TENANT] ~= '' then
    call('HINCRBY', pool_key(pool, 'running'), item[TENANT], n)
  end
end

-- Statistics: as histogram.py has them. a: arrived, w: waited, r: ran, d: done, f: failed.
local function happened(pool, kind, microseconds, n)
  local bin, seconds = 0, 0
  if microseconds and microseconds > 0 then
    seconds = microseconds / 1000000
    if microseconds > 1000 then
      bin = math.min(200, math.ceil(math.log(seconds * 1000) * 5.7707801635558536 - 1e-9))
    end
  end
  local bins = inner(inner(stats, pool), kind)
  local sums = bins[bin]
  n = n or 1
  if sums then
    sums[1], sums[2], sums[3] = sums[1] + n, sums[2] + seconds, sums[3] + seconds * seconds
  else
    bins[bin] = {n, seconds, seconds * seconds}
  end
end

local function add_sums(into, from)
  for name, sums in pairs(from) do
    local before = into[name]
    if before then
      sums = {before[1] + sums[1], before[2] + sums[2], before[3] + sums[3]}
    end
    into[name] = sums
  end
end

local function write_stats(pool, kinds)
  local key = pool_key(pool, 'stats')
  local bucket = string.format('10:%d', math.floor(now / 10000000) * 10)
  local kept = call('HGET', key, bucket)
  local sums = kept and unpacked(kept) or {}
  for kind, bins in pairs(kinds) do
    local named = {}
    for bin, some in pairs(bins) do
      named[kind .. bin] = some
    end
    add_sums(sums, named)
  end
  call('HSET', key, bucket, pack(sums))
end

-- An item of this group became ready (false: something else changed, all shall look). `later`:
-- it will be, and whoever waits has to know until when.
local function ring(pool, group, later)
  local of_pool = rings[pool]
  if not of_pool then
    of_pool = {n = 0, groups = {}}
    rings[pool] = of_pool
  end
  if group then
    of_pool.n = of_pool.n + 1
    of_pool.groups[group] = true
  else
    of_pool.all = true
  end
  of_pool.later = of_pool.later or later
end

local function could_take(waiter, groups)
  if groups[''] then
    return true
  end
  local worker = string.match(waiter, '\1(.*)$')
  local row = worker ~= '' and call('HGET', tag .. ':workers', worker)
  if not row then
    return worker == ''
  end
  for _, capability in ipairs(unpacked(row)[5]) do
    if groups[capability] then
      return true
    end
  end
  return false
end

-- The waiters to wake and when each began to wait: those first that wait longest, or all of them
-- when not everyone could take this work. Nobody is on the list any more whom a call names.
local function next_waiters(key, left, what)
  if not what.all and what.groups[''] then
    return call('ZPOPMIN', key, left)
  end
  local found = {}
  local all = call('ZRANGE', key, 0, -1, 'WITHSCORES')
  for i = 1, #all, 2 do
    if (what.all or #found < 2 * left) and (what.all or could_take(all[i], what.groups)) then
      call('ZREM', key, all[i])
      found[#found + 1], found[#found + 2] = all[i], all[i + 1]
    end
  end
  return found
end

-- Wake as many waiters as there is work for; one that is gone (nobody hears its bell) does not
-- count. A ring that says since when its waiter waited means: there is work for you, claim it.
local function wake(pool, what)
  local key = pool_key(pool, 'waiting')
  local left = what.n
  while left > 0 or what.all do
    local waiters = next_waiters(key, left, what)
    if #waiters == 0 then
      return
    end
    local about = call('HMGET', pool_key(pool, 'about'), 'paused_until', 'limits')
    local is_hindered = about[2] or tonumber(about[1] or 0) > now
    local is_sure = not (what.all or what.later or is_hindered)
    for i = 1, #waiters, 2 do
      local bell = tag .. ':bell:' .. string.match(waiters[i], '^[^\1]*')
      if call('PUBLISH', bell, is_sure and string.format('%.0f', waiters[i + 1]) or '0') > 0 then
        left = left - 1
      end
    end
  end
end

-- A lane is the ready items of one tenant and group. All lanes of a pool lie side by side in one
-- sorted set without scores, each in order of priority and arrival.
local function ready_member(id, item)
  return item[TENANT] .. '\1' .. item[GROUP] .. '\2'
    .. string.format('%08x%014x', 2147483647 - item[PRIORITY], item[SEQ]) .. id
end

local function held_member(id, item)
  return item[CLAIMED_BY] .. '\1' .. item[POOL] .. '\1' .. id
end

-- Take an item out of the state that it is in.
local function leave(id, item)
  count(item, -1)
  local status, pool = item[STATUS], item[POOL]
  if item[DELAYED] then
    remove(pool_key(pool, 'delayed'), id)
    item[DELAYED] = false
  elseif status == 'pending' then
    remove(pool_key(pool, 'ready'), ready_member(id, item))
  elseif status == 'claimed' then
    remove(tag .. ':held', held_member(id, item))
    item[TOKEN] = false
    item[AHEAD] = 0
  elseif status ~= 'done' and FINISHED[status] then
    remove(pool_key(pool, status), id)
  end
end

-- Bring an item that is in no state into one.
local function enter(id, item, status, delay)
  local pool = item[POOL]
  item[STATUS] = status
  item[FINISHED_AT] = false
  if status == 'pending' then
    item[READY_AT] = now + (delay or 0)
    if item[READY_AT] > now then
      item[DELAYED] = true
      add(pool_key(pool, 'delayed'), item[READY_AT], id)
      ring(pool, item[GROUP], true)
    else
      add(pool_key(pool, 'ready'), 0, ready_member(id, item))
      ring(pool, item[GROUP])
    end
  elseif status == 'done' then
    item[FINISHED_AT] = now
    local ids = inner(done, pool)
    ids[#ids + 1] = id
  elseif FINISHED[status] then
    item[FINISHED_AT] = now
    add(pool_key(pool, status), now, id)
  end
  count(item, 1)
  change(id)
end

-- Delete finished items, wherever they are noted but for the list of the done ones.
local function forget(pool, ids)
  load_all(ids)
  for _, id in ipairs(ids) do
    local item = loaded[id]
    leave(id, item)
    remove(pool_key(pool, 'order'), id)
    if item[KEY] then
      call('HDEL', pool_key(pool, 'keys'), item[KEY])
    end
  end
  in_parts('HDEL', tag .. ':items', ids)
  in_parts('HDEL', tag .. ':data', ids)
  in_parts('HDEL', tag .. ':more', ids)
  flush()
end

-- Done items are a list in the order of their ends; a pool keeps so many of them at most.
local MOST_DONE = 1000000
local function keep_done(pool, ids)
  local key = pool_key(pool, 'done')
  in_parts('RPUSH', key, ids)
  local beyond = math.min(call('LLEN', key) - MOST_DONE, 2 * #ids)
  if beyond > 0 then
    forget(pool, call('LRANGE', key, 0, beyond - 1))
    call('LTRIM', key, beyond, -1)
  end
end

-- Write all that changed. The last step of every script that changes something.
local function commit()
  flush()
  for pool, ids in pairs(done) do
    keep_done(pool, ids)
  end
  local rows = {}
  for i, id in ipairs(changed) do
    rows[2 * i - 1], rows[2 * i] = id, pack(loaded[id])
  end
  in_parts('HSET', tag .. ':items', rows)
  for pool, groups in pairs(counts) do
    local key = pool_key(pool, 'counts')
    for group, statuses in pairs(groups) do
      for status, n in pairs(statuses) do
        if n ~= 0 then
          call('HINCRBY', key, group .. '\1' .. status, n)
        end
      end
    end
  end
  for pool, sums in pairs(stats) do
    write_stats(pool, sums)
  end
  for pool, what in pairs(rings) do
    wake(pool, what)
  end
end

-- Delayed items whose time has come are ready.
local function promote(pool)
  local key = pool_key(pool, 'delayed')
  local due = call('ZRANGEBYSCORE', key, '-inf', now, 'LIMIT', 0, 1000)
  while #due > 0 do
    load_all(due)
    for _, id in ipairs(due) do
      local item = loaded[id]
      count_as(pool, item[GROUP], 'delayed', -1)
      item[DELAYED] = false
      change(id)
      remove(key, id)
      add(pool_key(pool, 'ready'), 0, ready_member(id, item))
    end
    flush()
    due = call('ZRANGEBYSCORE', key, '-inf', now, 'LIMIT', 0, 1000)
  end
end

-- The item in the order of the fields of WorkItem.
local function item_reply(id, item, data)
  local more = more_of(id, item)
  return {
    id, item[POOL], data or call('HGET', tag .. ':data', id), item[STATUS], item[ATTEMPTS],
    item[MAX_RETRIES], item[PRIORITY], item[TENANT], item[GROUP], item[KEY], item[CLAIMED_BY],
    item[EPOCH], item[TOKEN], more[CHECKPOINT], more[PROGRESS], more[NOTE], item[RESULT],
    more[ERROR], item[CREATED_AT], item[DELAYED] and item[READY_AT], item[CLAIMED_AT],
    item[FINISHED_AT], item[GIVEN_BACK],
  }
end

local function no_item(id)
  return redis.error_reply('NOITEM ' .. id)
end

local function no_worker(id)
  return redis.error_reply('NOWORKER ' .. id)
end
