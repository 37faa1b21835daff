-- One item without a key, a delay, a tenant or a group: what most pushes are, in half the time.
-- ARGV: pool, id, data, max_retries, priority.
local pool, id = ARGV[1], ARGV[2]
local seq = call('INCR', tag .. ':seq')
local item = new_item(pool, seq, tonumber(ARGV[4]), tonumber(ARGV[5]), '', '', '')
if call('HSETNX', tag .. ':items', id, row_of(item)) == 0 then
  return 1 -- it was stored before, and only the reply was lost
end
call('HSET', tag .. ':data', id, ARGV[3])
call('ZADD', pool_key(pool, 'order'), seq, id)
call('ZADD', pool_key(pool, 'ready'), 0, ready_member(id, item))
if call('HINCRBY', pool_key(pool, 'counts'), '\1pending', 1) == 1 then
  call('SADD', tag .. ':pools', pool) -- who pushed before, if it is not the first, did that
end
arrived(pool, 1)
if call('EXISTS', pool_key(pool, 'waiting')) == 1 then
  wake(pool, {n = 1, groups = {[''] = true}})
end
return 1
