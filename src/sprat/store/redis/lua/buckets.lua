-- Statistics are kept in buckets of time. Arrivals have a counter beside each bucket.

local function bucket_now()
  return string.format('10:%d', math.floor(now / 10000000) * 10)
end

local function arrived(pool, n)
  call('HINCRBY', pool_key(pool, 'stats'), bucket_now() .. ':a', n)
end
