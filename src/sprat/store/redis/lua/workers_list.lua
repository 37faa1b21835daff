-- ARGV: worker ('': all), pool ('': any), 1: only those that live. Answers with the time and them.
local id, pool = ARGV[1], ARGV[2]
local ids
if id ~= '' then
  ids = {id}
elseif ARGV[3] == '1' then
  ids = call('ZRANGE', pool == '' and tag .. ':live' or pool_key(pool, 'live'), 0, -1)
elseif pool ~= '' then
  ids = call('ZRANGE', pool_key(pool, 'live'), 0, -1)
  for _, ended in ipairs(call('ZRANGE', pool_key(pool, 'ended'), 0, -1)) do
    ids[#ids + 1] = ended
  end
else
  ids = call('HKEYS', tag .. ':workers')
end
local found = {}
for _, one in ipairs(ids) do
  local worker = worker_of(one)
  if worker then
    found[#found + 1] = worker_reply(one, worker)
  end
end
return {now, found}
