-- How an item is kept.

-- An item is one packed row in the hash `items`; its payload is in `data`, and what few items
-- have (error, checkpoint, progress, note, transient failures, why it is held) in `more`. '' and 0 stand for None and False, and no
-- text of an item has a zero byte in it. A row becomes a table in one step, which costs about a
-- third less than a message does that says the type of each value.
local FORMAT, WIDTH = '<dddddiiiiHBBBBssssssssss', 24
local SEQ, CREATED_AT, READY_AT, CLAIMED_AT, FINISHED_AT = 1, 2, 3, 4, 5
local ATTEMPTS, MAX_RETRIES, PRIORITY, EPOCH, GIVEN_BACK = 6, 7, 8, 9, 10
local AHEAD, DELAYED, SUSPECT, HAS_MORE = 11, 12, 13, 14
local POOL, STATUS, TENANT, GROUP, KEY, CLAIMED_BY, TOKEN = 15, 16, 17, 18, 19, 20, 21
local LAST_TOKEN, LAST_OUTCOME, RESULT = 22, 23, 24
local CHANGED = 25 -- true once it is to be written; not a part of the row
local ERROR, CHECKPOINT, PROGRESS, NOTE, TRANSIENTS, HOLD = 1, 2, 3, 4, 5, 6
local FINISHED = {done = true, poisoned = true, cancelled = true}

local function new_item(pool, seq, max_retries, priority, tenant, group, key)
  return {
    seq, now, now, 0, 0, 0, max_retries, priority, 0, 0, 0, 0, 0, 0,
    pool, 'pending', tenant, group, key, '', '', '', '', '', false,
  }
end

local function row_of(item)
  return struct.pack(FORMAT, unpack(item, 1, WIDTH))
end

local function item_from(row)
  return {struct.unpack(FORMAT, row)}
end

-- A lane is the ready items of one tenant and group. All lanes of a pool lie side by side in one
-- sorted set without scores, each in order of priority and arrival.
local function ready_member(id, item)
  return item[TENANT] .. '\1' .. item[GROUP] .. '\2'
    .. string.format('%08x%014x', 2147483647 - item[PRIORITY], item[SEQ]) .. id
end
