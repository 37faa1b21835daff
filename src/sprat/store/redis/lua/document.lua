-- ARGV: kind, name.
local found = document_of(ARGV[1], ARGV[2])
return found and {found[BODY], found[D_VERSION]}
