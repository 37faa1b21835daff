-- How an item is kept.

-- An item is one packed row in the hash `items`; its payload is in `data`, and what few items
-- have (error, checkpoint, progress, note) in `more`. False stands for None.
local POOL, SEQ, STATUS, ATTEMPTS, MAX_RETRIES, PRIORITY, TENANT, GROUP = 1, 2, 3, 4, 5, 6, 7, 8
local KEY, CREATED_AT, READY_AT, DELAYED, EPOCH, TOKEN, AHEAD, SUSPECT = 9, 10, 11, 12, 13, 14, 15, 16
local GIVEN_BACK, CLAIMED_BY, CLAIMED_AT, FINISHED_AT = 17, 18, 19, 20
local LAST_TOKEN, LAST_OUTCOME, RESULT, HAS_MORE = 21, 22, 23, 24
local ERROR, CHECKPOINT, PROGRESS, NOTE = 1, 2, 3, 4
local FINISHED = {done = true, poisoned = true, cancelled = true}

local function new_item(pool, seq, max_retries, priority, tenant, group, key)
  return {
    pool, seq, false, 0, max_retries, priority, tenant, group, key, now, now,
    false, 0, false, 0, false, 0, false, false, false, false, false, false, false,
  }
end

-- A lane is the ready items of one tenant and group. All lanes of a pool lie side by side in one
-- sorted set without scores, each in order of priority and arrival.
local function ready_member(id, item)
  return item[TENANT] .. '\1' .. item[GROUP] .. '\2'
    .. string.format('%08x%014x', 2147483647 - item[PRIORITY], item[SEQ]) .. id
end
