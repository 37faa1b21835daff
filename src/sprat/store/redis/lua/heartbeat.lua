-- ARGV: worker, incarnation, metadata as JSON (names and JSON texts), then claims as id, token.
-- Answers with the status, and the items that are lost.
local MAX_METADATA = 65536 -- as in payload.py
local id = ARGV[1]
local worker = worker_of(id)
if not worker then
  return no_worker(id)
end
local current = is_current(worker, ARGV[2])
if current and (worker[W_STATUS] == 'active' or worker[W_STATUS] == 'terminating') then
  renew_lease(worker)
  local metadata = cjson.decode(ARGV[3])
  for i = 1, #metadata, 2 do
    worker[W_METADATA][metadata[i]] = metadata[i + 1]
  end
  local size = 0
  for name, text in pairs(worker[W_METADATA]) do
    size = size + #name + #text + 4 -- two quotes, a colon, and a comma or a brace
  end
  if #metadata > 0 and size > MAX_METADATA then
    return redis.error_reply('METADATA ' .. id)
  end
  call('HSET', tag .. ':workers', id, pack(worker))
end
local lost = {}
for place = 4, #ARGV, 2 do
  local item = load(ARGV[place])
  if not item or not holds(item, ARGV[place + 1]) then
    lost[#lost + 1] = ARGV[place]
  end
end
return {current and worker[W_STATUS] or 'lost', lost}
