-- ARGV: kind, name, body with a sign ('': delete), version ('': any), seconds ('': for ever),
-- request.
local kind, name, body = ARGV[1], ARGV[2], ARGV[3]
local found = document_of(kind, name)
if found and found[REQUEST] == ARGV[6] then
  return 1 -- done before, and only its reply was lost
end
local version = found and found[D_VERSION] or 0
if ARGV[4] ~= '' and tonumber(ARGV[4]) ~= version then
  return 0
end
forget_expired()
forget_document(kind, name)
if body ~= '' then
  local until_ = ARGV[5] ~= '' and now + tonumber(ARGV[5])
  local row = pack({string.sub(body, 2), version + 1, until_, ARGV[6]})
  call('HSET', tag .. ':documents:' .. kind, name, row)
  call('ZADD', tag .. ':names:' .. kind, 0, name)
  if until_ then
    call('ZADD', tag .. ':expiries', until_, kind .. '\1' .. name)
  end
end
return 1
