-- ARGV: claims as id, token. Answers with the items whose claim no longer holds.
local lost = {}
for place = 1, #ARGV, 2 do
  local item = load(ARGV[place])
  if not item or not holds(item, ARGV[place + 1]) then
    lost[#lost + 1] = ARGV[place]
  end
end
return lost
