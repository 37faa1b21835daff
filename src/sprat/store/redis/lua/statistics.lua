-- Statistics of a stretch of time: bucket, name ("w12": waits in bin 12), n, total, squares.
local function row(bucket, name, sums)
  return string.format('%s:%s:%d:%.17g:%.17g', bucket, name, sums[1], sums[2], sums[3])
end

-- Of the buckets that end after a moment; of wide ones after another.
local function sums_after(pool, since, since_wide)
  local key, rows = pool_key(pool, 'stats'), {}
  for _, field in ipairs(call('HKEYS', key)) do
    local bucket, width, at, arrivals = string.match(field, '^((%d+):(%d+))(:?a?)$')
    local is_in = at + width > (width == '900' and since_wide or since)
    if is_in and arrivals ~= '' then
      rows[#rows + 1] = bucket .. ':a0:' .. call('HGET', key, field) .. ':0:0'
    elseif is_in then
      for name, sums in pairs(unpacked(call('HGET', key, field))) do
        rows[#rows + 1] = row(bucket, name, sums)
      end
    end
  end
  local bucket, fresh = fresh_sums(pool)
  if bucket and string.match(bucket, '%d+$') + 10 > since then
    for name, sums in pairs(fresh) do
      rows[#rows + 1] = row(bucket, name, sums)
    end
  end
  return rows
end

local function sums_since(pool, window)
  return sums_after(pool, now / 1000000 - window, now / 1000000 - window)
end
