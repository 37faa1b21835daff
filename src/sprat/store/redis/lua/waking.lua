-- Waking those who wait for work (bell.py).

local rings = {}

-- An item of this group became ready (false: something else changed, all shall look). `later`:
-- it will be, and whoever waits has to know until when.
local function ring(pool, group, later)
  local of_pool = rings[pool]
  if not of_pool then
    of_pool = {n = 0, groups = {}}
    rings[pool] = of_pool
  end
  if group then
    of_pool.n = of_pool.n + 1
    of_pool.groups[group] = true
  else
    of_pool.all = true
  end
  of_pool.later = of_pool.later or later
end

local function could_take(waiter, groups)
  if groups[''] then
    return true
  end
  local worker = string.match(waiter, '\1(.*)$')
  local row = worker ~= '' and call('HGET', tag .. ':workers', worker)
  if not row then
    return worker == ''
  end
  for _, capability in ipairs(unpacked(row)[5]) do
    if groups[capability] then
      return true
    end
  end
  return false
end

-- The waiters to wake and when each began to wait: those first that wait longest, or all of them
-- when not everyone could take this work. Nobody is on the list any more whom a call names.
local function next_waiters(key, left, what)
  if not what.all and what.groups[''] then
    return call('ZPOPMIN', key, left)
  end
  local found = {}
  local all = call('ZRANGE', key, 0, -1, 'WITHSCORES')
  for i = 1, #all, 2 do
    if (what.all or #found < 2 * left) and (what.all or could_take(all[i], what.groups)) then
      call('ZREM', key, all[i])
      found[#found + 1], found[#found + 2] = all[i], all[i + 1]
    end
  end
  return found
end

-- Wake as many waiters as there is work for; one that is gone (nobody hears its bell) does not
-- count. A ring that says since when its waiter waited means: there is work for you, claim it.
local function wake(pool, what)
  local key = pool_key(pool, 'waiting')
  local left = what.n
  while left > 0 or what.all do
    local waiters = next_waiters(key, left, what)
    if #waiters == 0 then
      return
    end
    local about = call('HMGET', pool_key(pool, 'about'), 'paused_until', 'limits')
    local is_hindered = about[2] or tonumber(about[1] or 0) > now
    local is_sure = not (what.all or what.later or is_hindered)
    for i = 1, #waiters, 2 do
      local bell = tag .. ':bell:' .. string.match(waiters[i], '^[^\1]*')
      if call('PUBLISH', bell, is_sure and string.format('%.0f', waiters[i + 1]) or '0') > 0 then
        left = left - 1
      end
    end
  end
end
