-- ARGV: item.
local id = ARGV[1]
local item = load(id)
if not item then
  return no_item(id)
end
promote(item[POOL])
commit()
return item_reply(id, item)
