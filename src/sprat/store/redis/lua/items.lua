-- ARGV: pool, status ('': any), limit, the item to begin after ('': none), or the place to go on
-- from, and a filter as JSON (ItemFilter; ages in microseconds). Answers with the place to go on
-- from (nil: the end is reached), items, and the last item that was looked at.
-- A call looks at this many items only: other clients wait meanwhile.
local LOOK_AT = 2000
local DIGEST = 40 -- characters before the id that a key leads to
local pool, status, limit, after = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local last, which = tonumber(ARGV[5]), cjson.decode(ARGV[6])
promote(pool)
if after ~= '' then
  local item = load(after)
  if not item then
    return no_item(after)
  end
  last = item[SEQ]
end

local function candidates()
  if which.key then
    local there = call('HGET', pool_key(pool, 'keys'), which.key)
    local id = there and string.sub(there, DIGEST + 1)
    return (id and id ~= after) and {id} or {}
  end
  local order = pool_key(pool, 'order')
  if which.newest then
    return call('ZREVRANGEBYSCORE', order, '(' .. last, '-inf', 'LIMIT', 0, LOOK_AT)
  end
  return call('ZRANGEBYSCORE', order, '(' .. last, '+inf', 'LIMIT', 0, LOOK_AT)
end

local function fits(id, item)
  if status ~= '' and item[STATUS] ~= status
    or which.prefix and string.sub(id, 1, #which.prefix) ~= which.prefix
    or which.tenant and item[TENANT] ~= which.tenant
    or which.older_seconds and item[CREATED_AT] > now - which.older_seconds
    or which.newer_seconds and item[CREATED_AT] < now - which.newer_seconds then
    return false
  end
  if which.error == nil and which.delayed == nil then
    return true
  end
  local more = more_of(id, item)
  local is_delayed = item[DELAYED] == 1 and not more[HOLD]
  if which.delayed ~= nil and (item[STATUS] ~= 'pending' or is_delayed ~= which.delayed) then
    return false
  end
  return which.error == nil or more[ERROR] and string.find(more[ERROR], which.error, 1, true)
end

local found, ids, last_id = {}, candidates(), false
load_all(ids)
for _, id in ipairs(ids) do
  local item = loaded[id]
  last, last_id = item[SEQ], id
  if fits(id, item) then
    found[#found + 1] = item_reply(id, item)
    if #found == limit then
      break
    end
  end
end
commit()
return {(#ids == LOOK_AT or #found == limit) and last or false, found, last_id}
