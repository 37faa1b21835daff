-- ARGV: pool ('': every one), threshold ('': the lease counts), why a worker past it is lost.
local workers, expired, released, poisoned = reap(ARGV[1] ~= '' and ARGV[1], ARGV[2], ARGV[3])
commit()
return {workers, expired, released, poisoned}
