-- ARGV: pool, the number of sets of options, then each set as max_retries, priority, delay,
-- tenant, group, backlog; then each item as id, data, the number of its options, and its key
-- followed by a digest of the payload ('' and '' without a key). Answers with the ids.

local pool = ARGV[1]
local options, place = {}, 3
for i = 1, tonumber(ARGV[2]) do
  options[i] = {
    tonumber(ARGV[place]), tonumber(ARGV[place + 1]), tonumber(ARGV[place + 2]),
    ARGV[place + 3], ARGV[place + 4], ARGV[place + 5] == '1',
  }
  place = place + 6
end
local first, n = place, (#ARGV - place + 1) / 5

local wanted = {}
for i = 1, n do
  wanted[i] = ARGV[first + 5 * (i - 1)]
end
load_all(wanted)

-- What each item would be, before anything is stored.
local ids, fresh, known = {}, {}, {}
local keys = pool_key(pool, 'keys')
for i = 1, n do
  place = first + 5 * (i - 1)
  local id, key, digest = ARGV[place], ARGV[place + 3], ARGV[place + 4]
  if not loaded[id] then
    local there = key ~= '' and (known[key] or call('HGET', keys, key))
    if there then
      if string.sub(there, 1, #digest) ~= digest then
        return redis.error_reply('CONFLICT ' .. key)
      end
      id = string.sub(there, #digest + 1)
    else
      fresh[#fresh + 1] = place
      loaded[id] = options -- anything: the same id may come again in this call
      if key ~= '' then
        known[key] = digest .. id
      end
    end
  end
  ids[i] = id
end

call('SADD', tag .. ':pools', pool)
if #fresh > 0 then
  local seq = call('INCRBY', tag .. ':seq', #fresh) - #fresh
  local data, order, has_lanes, has_tenants = {}, {}, false, false
  for i, at in ipairs(fresh) do
    local id, key, about = ARGV[at], ARGV[at + 3], options[tonumber(ARGV[at + 2])]
    local item = new_item(pool, seq + i, about[1], about[2], about[4], about[5], key)
    loaded[id] = item
    data[2 * i - 1], data[2 * i] = id, ARGV[at + 1]
    order[2 * i - 1], order[2 * i] = seq + i, id
    if key ~= '' then
      call('HSET', keys, key, known[key])
    end
    has_tenants = has_tenants or about[4] ~= ''
    has_lanes = has_lanes or about[4] ~= '' or about[5] ~= ''
    enter(id, item, about[6] and 'backlog' or 'pending', about[3])
  end
  in_parts('HSET', tag .. ':data', data)
  in_parts('ZADD', pool_key(pool, 'order'), order)
  if has_lanes then
    call('HSET', pool_key(pool, 'about'), 'has_lanes', 1)
  end
  if has_tenants then
    call('HSET', pool_key(pool, 'about'), 'has_tenants', 1)
  end
  arrived(pool, #fresh)
end
commit()
return ids
