-- ARGV: pool, limit. Deletes finished items past their retention, and old history.
local KEEP_WORKERS, KEEP_DECISIONS = 86400000000, 30 * 86400000000
local FINE_FOR, KEEP_STATS = 2 * 3600, 35 * 86400
local SLICE = 1000
local pool, limit = ARGV[1], tonumber(ARGV[2])
local keep = {done = 7 * 86400, poisoned = false, cancelled = 7 * 86400}
local about = about_pool(pool)
if about[SETTINGS] then
  local settings = cjson.decode(about[SETTINGS])
  for status in pairs(keep) do
    local seconds = settings['keep_' .. status .. '_seconds']
    if seconds ~= nil then
      keep[status] = seconds ~= cjson.null and seconds
    end
  end
end

-- Up to n items with this status that ended before a moment.
local function ended(status, before, n)
  local key = pool_key(pool, status)
  if status ~= 'done' then
    return call('ZRANGEBYSCORE', key, '-inf', '(' .. string.format('%.0f', before), 'LIMIT', 0, n)
  end
  local ids = {}
  local oldest = call('LRANGE', key, 0, n - 1)
  load_all(oldest)
  for place, id in ipairs(oldest) do
    if loaded[id][FINISHED_AT] >= before then
      break
    end
    ids[place] = id
  end
  return ids
end

local n = 0
for status, seconds in pairs(keep) do
  while seconds and n < limit do
    local ids = ended(status, now - seconds * 1000000, math.min(SLICE, limit - n))
    if #ids == 0 then
      break
    end
    forget(pool, ids)
    if status == 'done' then
      call('LTRIM', pool_key(pool, status), #ids, -1)
    end
    n = n + #ids
  end
end

for _, of_pool in ipairs({pool, ''}) do
  local key = pool_key(of_pool, 'ended')
  local old = call('ZRANGEBYSCORE', key, '-inf', '(' .. now - KEEP_WORKERS, 'LIMIT', 0, SLICE)
  if #old > 0 then
    call('HDEL', tag .. ':workers', unpack(old))
    call('ZREM', key, unpack(old))
  end
end

local decisions = pool_key(pool, 'decisions')
for _ = 1, SLICE do
  local oldest = call('LINDEX', decisions, -1)
  if not oldest or unpacked(oldest)[2] >= now - KEEP_DECISIONS then
    break
  end
  call('RPOP', decisions)
end

pack_up(pool)
local key, seconds = pool_key(pool, 'stats'), now / 1000000
local fields = call('HKEYS', key)

-- Old buckets are added to the totals when they are rolled up (totals.lua).
local function add_up(before)
  local totals = pool_key(pool, 'totals')
  local kept = call('HMGET', totals, 'until', 'sums')
  local from, sums, is_more = tonumber(kept[1] or 0), kept[2] and unpacked(kept[2]) or {}, false
  for _, field in ipairs(fields) do
    local width, at, arrivals = string.match(field, '^(%d+):(%d+)(:?a?)$')
    at = tonumber(at)
    if at < before and (width == '10' or at >= from) then
      local value = call('HGET', key, field)
      add_sums(sums, arrivals ~= '' and {a0 = {tonumber(value), 0, 0}} or unpacked(value))
      is_more = true
    end
  end
  if is_more then
    call('HSET', totals, 'until', math.max(from, before), 'sums', pack(sums))
  end
end
add_up(math.floor((seconds - FINE_FOR) / 900) * 900)

-- They are rolled up into wide ones, and the very old dropped.
for _, field in ipairs(fields) do
  local width, at, arrivals = string.match(field, '^(%d+):(%d+)(:?a?)$')
  width, at = tonumber(width), tonumber(at)
  local wide = math.floor(at / 900) * 900
  if at + width <= seconds - KEEP_STATS then
    call('HDEL', key, field)
  elseif width == 10 and wide + 900 <= seconds - FINE_FOR then
    local into, value = string.format('900:%d', wide) .. arrivals, call('HGET', key, field)
    if arrivals ~= '' then
      call('HINCRBY', key, into, value)
    else
      local kept = call('HGET', key, into)
      local sums = kept and unpacked(kept) or {}
      add_sums(sums, unpacked(value))
      call('HSET', key, into, pack(sums))
    end
    call('HDEL', key, field)
  end
end
commit()
return n
