-- Items in their states: loaded once, changed here, and written together at the end.

local loaded, changed = {}, {}
local counts, added, removed, taken, freed, done = {}, {}, {}, {}, {}, {}

local function load_all(ids)
  for i = 1, #ids, 1000 do
    local last = math.min(i + 999, #ids)
    local rows = call('HMGET', tag .. ':items', unpack(ids, i, last))
    for j = i, last do
      local id = ids[j]
      if loaded[id] == nil then
        local row = rows[j - i + 1]
        loaded[id] = row and item_from(row)
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

local function change(id, item)
  if item[CHANGED] ~= true then
    item[CHANGED] = true
    changed[#changed + 1] = id
  end
end

local function more_of(id, item)
  local row = item[HAS_MORE] == 1 and call('HGET', tag .. ':more', id)
  return row and unpacked(row) or {false, false, false, false, false, false}
end

local function set_more(id, item, more)
  local has_more = more[1] or more[2] or more[3] or more[4] or more[5] or more[6]
  item[HAS_MORE] = has_more and 1 or 0
  if item[HAS_MORE] == 1 then
    call('HSET', tag .. ':more', id, pack(more))
  else
    call('HDEL', tag .. ':more', id)
  end
  change(id, item)
end

local function set_error(id, item, text)
  if text or item[HAS_MORE] == 1 then
    local more = more_of(id, item)
    more[ERROR] = text
    set_more(id, item, more)
  end
end

-- Additions to and removals from sorted sets, and from what each worker holds, done together by
-- `flush`.
local function add(key, score, member)
  local values = inner(added, key)
  local n = #values
  values[n + 1], values[n + 2] = score, member
end

local function remove(key, member)
  local values = inner(removed, key)
  values[#values + 1] = member
end

local function held_key(worker_id)
  return tag .. ':held:' .. worker_id
end

local function flush()
  for key, members in pairs(removed) do
    in_parts('ZREM', key, members)
  end
  for key, values in pairs(added) do
    in_parts('ZADD', key, values)
  end
  for worker_id, ids in pairs(freed) do
    in_parts('SREM', held_key(worker_id), ids)
  end
  for worker_id, ids in pairs(taken) do
    in_parts('SADD', held_key(worker_id), ids)
  end
  added, removed, taken, freed = {}, {}, {}, {}
end

local last_pool, last_group, last_counts -- most items of a call are counted together
local function count_as(pool, group, status, n)
  if pool ~= last_pool or group ~= last_group then
    last_pool, last_group, last_counts = pool, group, inner(inner(counts, pool), group)
  end
  last_counts[status] = (last_counts[status] or 0) + n
end

local function count(item, n)
  local pool, status = item[POOL], item[STATUS]
  count_as(pool, item[GROUP], status, n)
  if item[DELAYED] == 1 then
    count_as(pool, item[GROUP], 'delayed', n)
  end
  if status == 'claimed' and item[TENANT] ~= '' then
    call('HINCRBY', pool_key(pool, 'running'), item[TENANT], n)
  end
end

-- Take an item out of the state that it is in.
local function leave(id, item)
  count(item, -1)
  local status, pool = item[STATUS], item[POOL]
  if item[DELAYED] == 1 then
    remove(pool_key(pool, 'delayed'), id)
    item[DELAYED] = 0
  elseif status == 'pending' then
    remove(pool_key(pool, 'ready'), ready_member(id, item))
  elseif status == 'claimed' then
    local ids = inner(freed, item[CLAIMED_BY])
    ids[#ids + 1] = id
    item[TOKEN] = ''
    item[AHEAD] = 0
  elseif status ~= 'done' and FINISHED[status] then
    remove(pool_key(pool, status), id)
  end
end

-- Bring an item that is in no state into one.
local function enter(id, item, status, delay)
  local pool = item[POOL]
  item[STATUS] = status
  item[FINISHED_AT] = 0
  if status == 'pending' then
    item[READY_AT] = now + (delay or 0)
    if item[READY_AT] > now then
      item[DELAYED] = 1
      add(pool_key(pool, 'delayed'), item[READY_AT], id)
      add_wakeup(pool, item[GROUP], true)
    else
      add(pool_key(pool, 'ready'), 0, ready_member(id, item))
      add_wakeup(pool, item[GROUP])
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
  change(id, item)
end

-- Delete finished items, wherever they are noted but for the list of the done ones.
local function forget(pool, ids)
  load_all(ids)
  for _, id in ipairs(ids) do
    local item = loaded[id]
    leave(id, item)
    remove(pool_key(pool, 'order'), id)
    if item[KEY] ~= '' then
      call('HDEL', pool_key(pool, 'keys'), item[KEY])
    end
  end
  in_parts('HDEL', tag .. ':items', ids)
  in_parts('HDEL', tag .. ':data', ids)
  in_parts('HDEL', tag .. ':more', ids)
  flush()
end

-- Done items are a list in the order of their ends; a pool keeps up to a fixed number of them.
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
    rows[2 * i - 1], rows[2 * i] = id, row_of(loaded[id])
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
  for pool in pairs(stats) do
    write_stats(pool)
  end
  for pool, what in pairs(wakeups) do
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
      item[DELAYED] = 0
      change(id, item)
      remove(key, id)
      add(pool_key(pool, 'ready'), 0, ready_member(id, item))
    end
    flush()
    due = call('ZRANGEBYSCORE', key, '-inf', now, 'LIMIT', 0, 1000)
  end
end

local function or_none(value)
  return value ~= '' and value ~= 0 and value
end

-- The item in the order of the fields of WorkItem.
local function item_reply(id, item, data)
  local more = more_of(id, item)
  return {
    id, item[POOL], data or call('HGET', tag .. ':data', id), item[STATUS], item[ATTEMPTS],
    item[MAX_RETRIES], item[PRIORITY], item[TENANT], item[GROUP], or_none(item[KEY]),
    or_none(item[CLAIMED_BY]), item[EPOCH], or_none(item[TOKEN]), more[CHECKPOINT],
    more[PROGRESS], more[NOTE], or_none(item[RESULT]), more[ERROR], item[CREATED_AT],
    item[DELAYED] == 1 and item[READY_AT], or_none(item[CLAIMED_AT]),
    or_none(item[FINISHED_AT]), item[GIVEN_BACK], more[TRANSIENTS] or 0, more[HOLD] or false,
  }
end

local function no_item(id)
  return redis.error_reply('NOITEM ' .. id)
end

local function no_worker(id)
  return redis.error_reply('NOWORKER ' .. id)
end
