-- ARGV: the format that we write. Answers with that of the store, which is ours if it has none yet.
local key = KEYS[1] .. ':format'
local kept = redis.call('GET', key)
if not kept then
  redis.pcall('SET', key, ARGV[1]) -- a replica refuses, and a server that has no memory left
end
return kept or ARGV[1]
