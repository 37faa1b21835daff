-- ARGV: pool, group ('': all), limit. The last decisions, newest first.
local found, from, limit = {}, 0, tonumber(ARGV[3])
while #found < limit do
  local rows = call('LRANGE', pool_key(ARGV[1], 'decisions'), from, from + 99)
  for _, row in ipairs(rows) do
    local kept = unpacked(row)
    if #found < limit and (ARGV[2] == '' or kept[3] == ARGV[2]) then
      found[#found + 1] = {kept[1], kept[2], kept[3], kept[4], kept[5], kept[6]}
    end
  end
  if #rows < 100 then
    break
  end
  from = from + 100
end
return found
