-- ARGV: pool ('': every one), threshold ('': the lease counts).
local workers, expired, released, poisoned = reap(ARGV[1] ~= '' and ARGV[1], ARGV[2])
commit()
return {workers, expired, released, poisoned}
