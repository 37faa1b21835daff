-- ARGV: pool, worker, the started items as JSON (null: nobody knows).
local freed = release_all(ARGV[2], ARGV[1], set_of(cjson.decode(ARGV[3])), false)
commit()
return freed
