-- ARGV: pool, status ('': any), limit, the item to begin after ('': the first), or the place to
-- go on from. Answers with the place to go on from (nil: the end is reached), and items.
-- A call looks at so many items only: other clients wait meanwhile.
local LOOK_AT = 2000
local pool, status, limit, after = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local last = tonumber(ARGV[5])
promote(pool)
if after ~= '' then
  local item = load(after)
  if not item then
    return no_item(after)
  end
  last = item[SEQ]
end
local found = {}
local ids = call('ZRANGEBYSCORE', pool_key(pool, 'order'), '(' .. last, '+inf', 'LIMIT', 0, LOOK_AT)
load_all(ids)
for _, id in ipairs(ids) do
  local item = loaded[id]
  last = item[SEQ]
  if status == '' or item[STATUS] == status then
    found[#found + 1] = item_reply(id, item)
    if #found == limit then
      break
    end
  end
end
commit()
return {(#ids == LOOK_AT or #found == limit) and last or false, found}
