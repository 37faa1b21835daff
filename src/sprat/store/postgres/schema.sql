-- The tables of a sprat store in PostgreSQL, in a schema of their own.
--
-- Times are seconds since 1970 by the server's clock. tenant and grp are '' for none, so that they
-- can stand in an index. worker_registry and work_pool are the two tables a person may want to
-- read; the others are bookkeeping. Every transition of an item keeps pool_count in the same
-- transaction. Text is compared byte by byte (COLLATE "C"): the order is then that of every store,
-- and comparing costs less.
--
-- Bloat: a claim and a settle each leave a dead row behind. work_pool is vacuumed early for that;
-- rows that are updated in place (counts, workers) leave room in their pages, so that an update
-- needs no new index entry (HOT) and the next one reuses the space.

CREATE TABLE sprat.meta (
    name text COLLATE "C" PRIMARY KEY,
    value text NOT NULL
);

-- The only clock. A SQL function, so that it costs no more than what it calls.
CREATE FUNCTION sprat.clock() RETURNS float8 LANGUAGE sql VOLATILE AS
$$ SELECT extract(epoch FROM clock_timestamp())::float8 $$;

CREATE TABLE sprat.pool (
    name text COLLATE "C" PRIMARY KEY,
    settings text NOT NULL DEFAULT '{}',    -- JSON
    version int NOT NULL DEFAULT 0,         -- of the settings
    paused_until float8,                    -- NULL: not paused; 9e99: until resumed
    has_lanes bool NOT NULL DEFAULT false,  -- an item with a tenant or a group was pushed once
    has_tenants bool NOT NULL DEFAULT false,
    turn bigint NOT NULL DEFAULT 0,         -- the last turn that a tenant was given
    purged_to bigint NOT NULL DEFAULT 0,    -- the seq at which the last purge stopped looking
    check_asked_at float8,                  -- when somebody last asked for a pass not yet begun
    awaited_at float8,                      -- the due time that a pass was last asked for
    listened_until float8 NOT NULL DEFAULT 0 -- somebody may sleep until it is told of new work
) WITH (fillfactor = 20);

-- Each server process adds to a row of its own (shard), so that none waits for another's commit.
CREATE TABLE sprat.pool_count (
    pool_name text COLLATE "C" NOT NULL,
    grp text COLLATE "C" NOT NULL,
    shard int NOT NULL,
    pending bigint NOT NULL DEFAULT 0,      -- delayed ones included
    delayed bigint NOT NULL DEFAULT 0,
    backlog bigint NOT NULL DEFAULT 0,
    claimed bigint NOT NULL DEFAULT 0,
    done bigint NOT NULL DEFAULT 0,
    poisoned bigint NOT NULL DEFAULT 0,
    cancelled bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (pool_name, grp, shard)
) WITH (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

CREATE TABLE sprat.tenant_turn (
    pool_name text COLLATE "C" NOT NULL,
    tenant text COLLATE "C" NOT NULL,
    turn bigint NOT NULL,
    PRIMARY KEY (pool_name, tenant)
) WITH (fillfactor = 50);

CREATE TABLE sprat.work_pool (
    seq bigint GENERATED ALWAYS AS IDENTITY, -- order of arrival
    id text COLLATE "C" PRIMARY KEY,
    pool_name text COLLATE "C" NOT NULL,
    status text COLLATE "C" NOT NULL DEFAULT 'pending',
    claimed_by text COLLATE "C",
    claimed_at float8,
    attempts int NOT NULL DEFAULT 0,
    max_retries int NOT NULL DEFAULT 3,
    priority int NOT NULL DEFAULT 0,
    tenant text COLLATE "C" NOT NULL DEFAULT '',
    grp text COLLATE "C" NOT NULL DEFAULT '',
    key text COLLATE "C",
    created_at float8 NOT NULL,
    ready_at float8 NOT NULL,               -- when it could last be claimed
    run_at float8,                          -- NULL unless delayed
    finished_at float8,
    epoch int NOT NULL DEFAULT 0,
    token text COLLATE "C",                 -- of the current claim; a done item keeps its last
    last_token text COLLATE "C",            -- of the claim settled last, with its outcome:
    last_outcome text COLLATE "C",          --   the same settle again is success again
    ahead smallint NOT NULL DEFAULT 0,      -- claimed ahead: 1 announced, 2 unannounced
    suspect bool NOT NULL DEFAULT false,
    given_back int NOT NULL DEFAULT 0,
    progress float8,
    progress_note text,
    data text NOT NULL,                     -- JSON
    result text,                            -- JSON
    error text,
    checkpoint text                         -- JSON
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.2);
CREATE UNIQUE INDEX work_pool_key ON sprat.work_pool (pool_name, key) WHERE key IS NOT NULL;
CREATE INDEX work_pool_order ON sprat.work_pool (pool_name, seq);
-- In claim order; holds ready items only, so a claim never meets finished or delayed ones.
CREATE INDEX work_pool_ready ON sprat.work_pool (pool_name, priority DESC, tenant, grp, seq)
    WHERE status = 'pending' AND run_at IS NULL;
CREATE INDEX work_pool_delayed ON sprat.work_pool (pool_name, run_at, grp)
    WHERE status = 'pending' AND run_at IS NOT NULL;
CREATE INDEX work_pool_claimed ON sprat.work_pool (claimed_by) WHERE status = 'claimed';
CREATE INDEX work_pool_running ON sprat.work_pool (pool_name, tenant)
    WHERE status = 'claimed' AND tenant <> '';
-- Done items are in none of these: they are found in order of arrival, and cost no index entry.
CREATE INDEX work_pool_ended ON sprat.work_pool (pool_name, status, finished_at)
    WHERE status IN ('poisoned', 'cancelled', 'backlog');

CREATE TABLE sprat.worker_registry (
    worker_id text COLLATE "C" PRIMARY KEY,
    status text COLLATE "C" NOT NULL DEFAULT 'active',
    host text,
    pid bigint,
    capabilities text[] NOT NULL DEFAULT '{}',
    pool_id text COLLATE "C",
    grp text COLLATE "C" NOT NULL DEFAULT '', -- of the scale set that launched it
    started_at float8 NOT NULL,
    last_heartbeat float8 NOT NULL,
    current_task_id text,                   -- not written any more: rows.py looks it up
    incarnation int NOT NULL DEFAULT 0,
    lease_seconds float8 NOT NULL,
    lease_until float8 NOT NULL,            -- while starting: the deadline of the launch
    metadata text NOT NULL DEFAULT '{}',    -- JSON
    reason text,
    ended_at float8
) WITH (fillfactor = 50);
CREATE INDEX worker_registry_live ON sprat.worker_registry (pool_id)
    WHERE status IN ('starting', 'active', 'terminating');
CREATE INDEX worker_registry_ended ON sprat.worker_registry (ended_at) WHERE ended_at IS NOT NULL;

CREATE TABLE sprat.scale_set (
    pool_name text COLLATE "C" NOT NULL,
    grp text COLLATE "C" NOT NULL,
    version int NOT NULL DEFAULT 0,
    last_up_at float8,
    last_down_at float8,
    launch_failures int NOT NULL DEFAULT 0,
    last_launch_failure_at float8,
    PRIMARY KEY (pool_name, grp)
) WITH (fillfactor = 50);

CREATE TABLE sprat.decision (
    pool_name text COLLATE "C" NOT NULL,
    grp text COLLATE "C" NOT NULL,
    version int NOT NULL,
    at float8 NOT NULL,
    policy text NOT NULL,
    direction text NOT NULL,
    current int NOT NULL,
    desired int NOT NULL,
    reason text NOT NULL,
    inputs text NOT NULL,                   -- JSON
    launched text[] NOT NULL,               -- worker ids
    drained text[] NOT NULL,                -- worker ids
    PRIMARY KEY (pool_name, grp, version)
);

CREATE TABLE sprat.pool_stats (
    pool_name text COLLATE "C" NOT NULL,
    width int NOT NULL,                     -- seconds that the bucket is long
    at bigint NOT NULL,                     -- when it began
    kind text COLLATE "C" NOT NULL,         -- arrive, wait, run, done, fail
    bin int NOT NULL,                       -- of the histogram, 0 for kinds without one
    shard int NOT NULL,
    n bigint NOT NULL,
    total float8 NOT NULL,
    squares float8 NOT NULL,
    PRIMARY KEY (pool_name, width, at, kind, bin, shard)
) WITH (fillfactor = 70);

CREATE TABLE sprat.document (               -- API keys, triggers, who leads: see backend.py
    kind text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    body text NOT NULL,                     -- JSON
    version int NOT NULL,
    expires_at float8 NOT NULL,             -- 9e99: never
    PRIMARY KEY (kind, name)
);
CREATE INDEX document_expiry ON sprat.document (expires_at) WHERE expires_at < 9e99;

CREATE TABLE sprat.bucket (
    name text COLLATE "C" PRIMARY KEY,
    tokens float8 NOT NULL,
    at float8 NOT NULL                      -- when they were counted
) WITH (fillfactor = 50);

-- An item as its worker sees it, and the answer to the rest of an exchange in the first row:
-- the places of the settlements that hold, and when those of them that ended now were claimed.
CREATE TYPE sprat.exchanged AS (
    now float8, settled int[], claimed_at float8[], started bool,
    ready_at float8, id text, data text, attempts int, max_retries int, priority int, tenant text,
    grp text, key text, epoch int, token text, checkpoint text, progress float8,
    progress_note text, error text, created_at float8, given_back int
);
