-- Statistics of a stretch of time: bucket, name ("w12": waits in bin 12), n, total, squares.
local function sums_since(pool, window)
  local since = now / 1000000 - window
  local rows = {}
  for _, bucket in ipairs(call('HKEYS', pool_key(pool, 'stats'))) do
    local width, at = string.match(bucket, '^(%d+):(%d+)$')
    if at + width > since then
      for name, sums in pairs(unpacked(call('HGET', pool_key(pool, 'stats'), bucket))) do
        rows[#rows + 1] = string.format('%s:%s:%d:%.17g:%.17g', bucket, name, sums[1], sums[2], sums[3])
      end
    end
  end
  return rows
end
