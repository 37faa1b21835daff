-- ARGV: kind, limit, the name to begin after ('': the first).
local kind, limit, from = ARGV[1], tonumber(ARGV[2]), ARGV[3] == '' and '-' or '(' .. ARGV[3]
local found = {}
while #found < limit do
  local names = call('ZRANGEBYLEX', tag .. ':names:' .. kind, from, '+', 'LIMIT', 0, limit)
  for _, name in ipairs(names) do
    local one = document_of(kind, name)
    if one and #found < limit then
      found[#found + 1] = {name, one[BODY], one[D_VERSION]}
    end
    from = '(' .. name
  end
  if #names < limit then
    break
  end
end
return found
