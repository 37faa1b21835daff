-- ARGV: item, token, checkpoint ('': none), progress ('': none), note with a sign ('': none).
local id = ARGV[1]
local item = load(id)
if not item then
  return no_item(id)
end
if not holds(item, ARGV[2]) then
  return 0
end
local more = more_of(id, item)
more[CHECKPOINT] = ARGV[3] ~= '' and ARGV[3] or more[CHECKPOINT]
more[PROGRESS] = ARGV[4] ~= '' and ARGV[4] or more[PROGRESS]
more[NOTE] = ARGV[5] ~= '' and string.sub(ARGV[5], 2) or more[NOTE]
set_more(id, item, more)
commit()
return 1
