-- What happened, summed up in buckets of time as histogram.py has it. w: waited, r: ran, d: done,
-- f: failed; "w12": waits in bin 12. The bucket of now is the hash `fresh`, a field for each sum: to
-- read and write all of them for every job would cost more than the job. With the next bucket it
-- is packed up, and joins the others in `stats`.

local SUMS = '<ddd'
-- Where bins end, from bin 27 to 105: milliseconds, 8 characters each (scripts.py puts them in). One
-- text, not a table: that would be made anew at every call.
local EDGES = '{edges}'

local stats = {}
local stats_pool, stats_kinds -- of the last one: a batch is of one pool

local function edge(bin)
  local place = bin - 27
  if place < 0 or place > 78 then
    return 1000 * 2 ^ (bin / 4)
  end
  return 1000 * tonumber(string.sub(EDGES, 8 * place + 1, 8 * place + 8))
end

-- Rounding moved no edge as far as the next one. Half a microsecond is nothing, as in histogram.py.
local function bin_of(microseconds)
  microseconds = microseconds - 0.5
  local bin = math.ceil(math.log(microseconds / 1000) * 5.7707801635558536 - 1e-9)
  if microseconds > edge(bin) then
    bin = bin + 1
  elseif microseconds <= edge(bin - 1) then
    bin = bin - 1
  end
  return math.min(200, bin)
end

local function happened(pool, kind, microseconds)
  local bin, seconds = 0, 0
  if microseconds and microseconds > 0 then
    seconds = microseconds / 1000000
    if microseconds > 1000 then
      bin = bin_of(microseconds)
    end
  end
  if pool ~= stats_pool then
    stats_pool, stats_kinds = pool, inner(stats, pool)
  end
  local bins = inner(stats_kinds, kind)
  local sums = bins[bin]
  if sums then
    sums[1], sums[2], sums[3] = sums[1] + 1, sums[2] + seconds, sums[3] + seconds * seconds
  else
    bins[bin] = {1, seconds, seconds * seconds}
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

-- The bucket that is not packed up yet (false: none) and its sums.
local function fresh_sums(pool)
  local found = call('HGETALL', pool_key(pool, 'fresh'))
  local bucket, sums = false, {}
  for i = 1, #found, 2 do
    if found[i] == 'at' then
      bucket = found[i + 1]
    else
      local n, seconds, squares = struct.unpack(SUMS, found[i + 1])
      sums[found[i]] = {n, seconds, squares}
    end
  end
  return bucket, sums
end

local function pack_up(pool)
  local bucket, sums = fresh_sums(pool)
  if bucket and bucket ~= bucket_now() then
    local key = pool_key(pool, 'stats')
    local kept = call('HGET', key, bucket)
    add_sums(sums, kept and unpacked(kept) or {})
    call('HSET', key, bucket, pack(sums))
    call('DEL', pool_key(pool, 'fresh'))
  end
end

local function write_stats(pool)
  local fresh, bucket = pool_key(pool, 'fresh'), bucket_now()
  local names, news = {'at'}, {false}
  for kind, bins in pairs(stats[pool]) do
    for bin, sums in pairs(bins) do
      names[#names + 1], news[#news + 1] = kind .. bin, sums
    end
  end
  local kept = call('HMGET', fresh, unpack(names))
  if kept[1] and kept[1] ~= bucket then
    pack_up(pool)
    kept = {}
  end
  local values = {'at', bucket}
  for i = 2, #names do
    local n, seconds, squares = unpack(news[i])
    if kept[i] then
      local n_before, seconds_before, squares_before = struct.unpack(SUMS, kept[i])
      n, seconds, squares = n + n_before, seconds + seconds_before, squares + squares_before
    end
    values[2 * i - 1], values[2 * i] = names[i], struct.pack(SUMS, n, seconds, squares)
  end
  call('HSET', fresh, unpack(values))
end
