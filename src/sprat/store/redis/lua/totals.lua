-- ARGV: pool. All that it did: rows as those of statistics.lua, and decisions ("up:3": those up for
-- reason 3) with their numbers. `totals` has the sums of the buckets that purge.lua rolled up, the
-- last of which ended at `until`: a wide one after it is of a client that knows no totals.
local pool, rows, decisions, rolled_up = ARGV[1], {}, {}, 0
local kept = call('HGETALL', pool_key(pool, 'totals'))
for i = 1, #kept, 2 do
  if kept[i] == 'until' then
    rolled_up = tonumber(kept[i + 1])
  elseif kept[i] == 'sums' then
    for name, sums in pairs(unpacked(kept[i + 1])) do
      rows[#rows + 1] = row('0:0', name, sums)
    end
  else
    decisions[#decisions + 1], decisions[#decisions + 2] = kept[i], tonumber(kept[i + 1])
  end
end
for _, text in ipairs(sums_after(pool, 0, rolled_up)) do
  rows[#rows + 1] = text
end
return {rows, decisions}
