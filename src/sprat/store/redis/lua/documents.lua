-- Documents: a packed row (body, version, when it expires, who put it) in the hash of its kind,
-- its name in a sorted set without scores beside it, its expiry in `expiries`.
local BODY, D_VERSION, EXPIRES_AT, REQUEST = 1, 2, 3, 4

local function document_of(kind, name)
  local row = call('HGET', tag .. ':documents:' .. kind, name)
  local found = row and unpacked(row)
  return found and (not found[EXPIRES_AT] or found[EXPIRES_AT] > now) and found
end

local function forget_document(kind, name)
  call('HDEL', tag .. ':documents:' .. kind, name)
  call('ZREM', tag .. ':names:' .. kind, name)
  call('ZREM', tag .. ':expiries', kind .. '\1' .. name)
end

local function forget_expired()
  for _, both in ipairs(call('ZRANGEBYSCORE', tag .. ':expiries', '-inf', now, 'LIMIT', 0, 100)) do
    forget_document(string.match(both, '^([^\1]*)\1(.*)$'))
  end
end
