-- Waking waiters (wakeup.py). Wake-ups are collected, and published by `commit`.

local wakeups = {}

-- An item of this group became ready (false: something else changed, and every waiter looks).
-- `later`: it is delayed, and waiters have to learn until when.
local function add_wakeup(pool, group, later)
  local of_pool = wakeups[pool]
  if not of_pool then
    of_pool = {n = 0, groups = {}}
    wakeups[pool] = of_pool
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

-- The waiters to wake and when each began to wait: the longest waits first, or every waiter that
-- could take this work if some could not. They are removed from the list.
local function next_waiters(key, left, what)
  if not what.all and what.groups[''] then
    return call('ZPOPMIN', key, left)
  end
  local waiters = {}
  local all = call('ZRANGE', key, 0, -1, 'WITHSCORES')
  for i = 1, #all, 2 do
    if (what.all or #waiters < 2 * left) and (what.all or could_take(all[i], what.groups)) then
      call('ZREM', key, all[i])
      waiters[#waiters + 1], waiters[#waiters + 2] = all[i], all[i + 1]
    end
  end
  return waiters
end

-- Wake as many waiters as there is work for; one without a subscriber on its channel does not
-- count. A wake-up with the moment at which its waiter began to wait means: claim, there is work.
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
      local channel = tag .. ':bell:' .. string.match(waiters[i], '^[^\1]*')
      if call('PUBLISH', channel, is_sure and string.format('%.0f', waiters[i + 1]) or '0') > 0 then
        left = left - 1
      end
    end
  end
end
