-- The beginning of every script: the keys and the clock.
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
