-- What happened, summed up in buckets of time as histogram.py has it. w: waited, r: ran, d: done,
-- f: failed; "w12": waits in bin 12. Arrivals have a counter beside each bucket: to read, add up and
-- write the sums with every push would be a good part of its cost.

local stats = {}
local stats_pool, stats_kinds -- of the last one: a batch is of one pool

local function happened(pool, kind, microseconds)
  local bin, seconds = 0, 0
  if microseconds and microseconds > 0 then
    seconds = microseconds / 1000000
    if microseconds > 1000 then
      bin = math.min(200, math.ceil(math.log(seconds * 1000) * 5.7707801635558536 - 1e-9))
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

local function bucket_now()
  return string.format('10:%d', math.floor(now / 10000000) * 10)
end

local function arrived(pool, n)
  call('HINCRBY', pool_key(pool, 'stats'), bucket_now() .. ':a', n)
end

local function write_stats(pool)
  local key, bucket = pool_key(pool, 'stats'), bucket_now()
  local kept = call('HGET', key, bucket)
  local sums = kept and unpacked(kept) or {}
  for kind, bins in pairs(stats[pool]) do
    local named = {}
    for bin, added_up in pairs(bins) do
      named[kind .. bin] = added_up
    end
    add_sums(sums, named)
  end
  call('HSET', key, bucket, pack(sums))
end
