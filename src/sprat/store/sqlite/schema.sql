-- The tables of a sprat store in SQLite.
--
-- Times are seconds since 1970 by the store's clock. tenant and grp are '' for none, so that they
-- can stand in an index. worker_registry and work_pool are the two tables a person may want to
-- read; the others are bookkeeping. Every transition of an item goes through items.py or claims.py,
-- which keep pool_count and pool_stats in the same transaction.

CREATE TABLE meta (
    name TEXT PRIMARY KEY,
    value
) WITHOUT ROWID;

CREATE TABLE pool (
    name TEXT PRIMARY KEY,
    settings TEXT NOT NULL DEFAULT '{}',    -- JSON
    version INTEGER NOT NULL DEFAULT 0,     -- of the settings
    paused_until REAL,                      -- NULL: not paused; 9e99: until resumed
    has_lanes INTEGER NOT NULL DEFAULT 0,   -- an item with a tenant or a group was pushed once
    has_tenants INTEGER NOT NULL DEFAULT 0,
    turn INTEGER NOT NULL DEFAULT 0,        -- the last turn that a tenant was given
    purged_to INTEGER NOT NULL DEFAULT 0,   -- the seq at which the last purge stopped looking
    check_asked_at REAL,                    -- when somebody last asked for a pass not yet begun
    awaited_at REAL                         -- the due time that a pass was last asked for
) WITHOUT ROWID;

CREATE TABLE pool_count (
    pool_name TEXT NOT NULL,
    grp TEXT NOT NULL,
    pending INTEGER NOT NULL,               -- delayed ones included
    delayed INTEGER NOT NULL,
    backlog INTEGER NOT NULL,
    claimed INTEGER NOT NULL,
    done INTEGER NOT NULL,
    poisoned INTEGER NOT NULL,
    cancelled INTEGER NOT NULL,
    PRIMARY KEY (pool_name, grp)
) WITHOUT ROWID;

CREATE TABLE tenant_turn (
    pool_name TEXT NOT NULL,
    tenant TEXT NOT NULL,
    turn INTEGER NOT NULL,
    PRIMARY KEY (pool_name, tenant)
) WITHOUT ROWID;

CREATE TABLE work_pool (
    seq INTEGER PRIMARY KEY,                -- order of arrival
    id TEXT NOT NULL,
    pool_name TEXT NOT NULL,
    status TEXT NOT NULL DEFAULT 'pending',
    claimed_by TEXT,
    claimed_at REAL,
    attempts INTEGER NOT NULL DEFAULT 0,
    max_retries INTEGER NOT NULL DEFAULT 3,
    priority INTEGER NOT NULL DEFAULT 0,
    tenant TEXT NOT NULL DEFAULT '',
    grp TEXT NOT NULL DEFAULT '',
    key TEXT,
    created_at REAL NOT NULL,
    ready_at REAL NOT NULL,                 -- when it could last be claimed
    run_at REAL,                            -- NULL unless delayed
    finished_at REAL,
    epoch INTEGER NOT NULL DEFAULT 0,
    token TEXT,                             -- of the current claim, NULL unless claimed
    last_token TEXT,                        -- of the claim settled last, with its outcome:
    last_outcome TEXT,                      --   the same settle again is success again
    ahead INTEGER NOT NULL DEFAULT 0,       -- claimed ahead: 1 announced, 2 unannounced
    suspect INTEGER NOT NULL DEFAULT 0,
    given_back INTEGER NOT NULL DEFAULT 0,
    progress REAL,
    progress_note TEXT,
    data TEXT NOT NULL,                     -- JSON
    result TEXT,                            -- JSON
    error TEXT,
    checkpoint TEXT,                        -- JSON
    room TEXT DEFAULT '                                                                '
                                            -- given up by the first claim for what it adds: a row
                                            -- that does not grow does not split its page
);
CREATE UNIQUE INDEX work_pool_id ON work_pool (id);
CREATE UNIQUE INDEX work_pool_key ON work_pool (pool_name, key) WHERE key IS NOT NULL;
-- Claimed items by worker, then ready ones in claim order: a claim never meets finished or delayed
-- ones. Both in one index, side by side: a claim mostly moves an entry within one page.
CREATE INDEX work_pool_live ON work_pool (claimed_by DESC, pool_name, priority DESC, tenant, grp, seq)
    WHERE run_at IS NULL AND status IN ('pending', 'claimed');
CREATE INDEX work_pool_delayed ON work_pool (pool_name, run_at, grp)
    WHERE status = 'pending' AND run_at IS NOT NULL;
CREATE INDEX work_pool_running ON work_pool (pool_name, tenant)
    WHERE status = 'claimed' AND tenant <> '';
CREATE INDEX work_pool_backlog ON work_pool (pool_name) WHERE status = 'backlog';
-- Done items are in none of these: they are found in order of arrival, and cost no index entry.
CREATE INDEX work_pool_ended ON work_pool (pool_name, status, finished_at)
    WHERE status IN ('poisoned', 'cancelled');

CREATE TABLE worker_registry (
    worker_id TEXT PRIMARY KEY,
    status TEXT NOT NULL DEFAULT 'active',
    host TEXT,
    pid INTEGER,
    capabilities TEXT NOT NULL DEFAULT '[]', -- JSON
    pool_id TEXT,
    grp TEXT NOT NULL DEFAULT '',           -- of the scale set that launched it
    started_at REAL NOT NULL,
    last_heartbeat REAL NOT NULL,
    current_task_id TEXT,                   -- not written any more: rows.py looks it up
    incarnation INTEGER NOT NULL DEFAULT 0,
    lease_seconds REAL NOT NULL,
    lease_until REAL NOT NULL,              -- while starting: the deadline of the launch
    metadata TEXT NOT NULL DEFAULT '{}',    -- JSON
    reason TEXT,
    ended_at REAL
) WITHOUT ROWID;
CREATE INDEX worker_registry_live ON worker_registry (pool_id, lease_until)
    WHERE status IN ('starting', 'active', 'terminating');
CREATE INDEX worker_registry_ended ON worker_registry (ended_at) WHERE ended_at IS NOT NULL;

CREATE TABLE scale_set (
    pool_name TEXT NOT NULL,
    grp TEXT NOT NULL,
    version INTEGER NOT NULL DEFAULT 0,
    last_up_at REAL,
    last_down_at REAL,
    launch_failures INTEGER NOT NULL DEFAULT 0,
    last_launch_failure_at REAL,
    PRIMARY KEY (pool_name, grp)
) WITHOUT ROWID;

CREATE TABLE decision (
    pool_name TEXT NOT NULL,
    grp TEXT NOT NULL,
    version INTEGER NOT NULL,
    at REAL NOT NULL,
    policy TEXT NOT NULL,
    direction TEXT NOT NULL,
    current INTEGER NOT NULL,
    desired INTEGER NOT NULL,
    reason TEXT NOT NULL,
    inputs TEXT NOT NULL,                   -- JSON
    launched TEXT NOT NULL,                 -- JSON, worker ids
    drained TEXT NOT NULL,                  -- JSON, worker ids
    PRIMARY KEY (pool_name, grp, version)
) WITHOUT ROWID;

CREATE TABLE pool_stats (
    pool_name TEXT NOT NULL,
    width INTEGER NOT NULL,                 -- seconds that the bucket is long
    at INTEGER NOT NULL,                    -- when it began
    kind TEXT NOT NULL,                     -- arrive, wait, run, done, fail
    bin INTEGER NOT NULL,                   -- of the histogram, 0 for kinds without one
    n INTEGER NOT NULL,
    total REAL NOT NULL,
    squares REAL NOT NULL,
    PRIMARY KEY (pool_name, width, at, kind, bin)
) WITHOUT ROWID;
