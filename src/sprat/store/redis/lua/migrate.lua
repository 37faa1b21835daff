-- ARGV: the format of the store, the one that we write, the reason that its workers leave. Workers
-- of the old format would ignore an item's task: they end what they hold and go.
if call('GET', tag .. ':format') ~= ARGV[1] then
  return 0 -- another client was faster
end
for _, id in ipairs(call('ZRANGE', tag .. ':live', 0, -1)) do
  local worker = worker_of(id)
  if RANK[worker[W_STATUS]] < 2 then
    drain(id, worker, ARGV[3])
  end
end
-- A process of the older sprat that stays connected must not launch workers any more: its scripts
-- find a text where the scale sets were, and fail before they write.
for _, pool in ipairs(call('SMEMBERS', tag .. ':pools')) do
  if call('EXISTS', pool_key(pool, 'scale')) == 1 then
    call('RENAME', pool_key(pool, 'scale'), pool_key(pool, 'scales'))
  end
  call('SET', pool_key(pool, 'scale'), 'moved to scales')
end
call('SET', tag .. ':format', ARGV[2])
commit()
return 1
