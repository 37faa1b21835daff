-- ARGV: items. Answers with the pool of each, '' for an unknown one.
load_all(ARGV)
local pools = {}
for i, id in ipairs(ARGV) do
  pools[i] = loaded[id] and loaded[id][POOL] or ''
end
return pools
