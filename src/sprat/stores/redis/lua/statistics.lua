-- Statistics of a stretch of time: bucket, name ("w12": waits in bin 12), n, total, squares.
local function sums_since(pool, window)
  local function row(bucket, name, sums)
    return string.format('%s:%s:%d:%.17g:%.17g', bucket, name, sums[1], sums[2], sums[3])
  end

  local key, since = pool_key(pool, 'stats'), now / 1000000 - window
  local rows = {}
  for _, field in ipairs(call('HKEYS', key)) do
    local bucket, width, at, arrivals = string.match(field, '^((%d+):(%d+))(:?a?)$')
    if at + width > since and arrivals ~= '' then
      rows[#rows + 1] = bucket .. ':a0:' .. call('HGET', key, field) .. ':0:0'
    elseif at + width > since then
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
