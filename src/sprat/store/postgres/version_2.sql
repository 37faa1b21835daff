-- Schema version 2: tasks, holds, transient failures, pause reasons, and leases after outages.
--
-- Only adds. A client of version 1 that is connected can still settle what it holds and leave: the
-- functions that it calls (exchange, take_next, take, claimed_as, push, push_one) stay as they are,
-- those of version 2 have names of their own.

ALTER TABLE sprat.work_pool
    ADD COLUMN task text COLLATE "C",           -- NULL: the pool's handler, command or machine
    ADD COLUMN transients int NOT NULL DEFAULT 0, -- transient failures that were not charged
    ADD COLUMN hold text;                       -- why a pending item waits: its task is unknown
CREATE INDEX work_pool_parked ON sprat.work_pool (pool_name, task, grp) WHERE hold IS NOT NULL;

ALTER TABLE sprat.worker_registry
    ADD COLUMN renewals int NOT NULL DEFAULT 0; -- fresh leases since its last sign of life

ALTER TABLE sprat.pool
    ADD COLUMN pause_reason text;

-- When the store last worked, and the start time of the server then: see leases.py. One row, found
-- by its key: a sequential scan with enable_seqscan off has a cost at which the server starts JIT.
CREATE TABLE sprat.mark (
    id int PRIMARY KEY CHECK (id = 1),
    at float8 NOT NULL,
    server float8 NOT NULL
) WITH (fillfactor = 10, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
INSERT INTO sprat.mark
VALUES (1, sprat.clock(), extract(epoch FROM pg_postmaster_start_time())::float8);

-- As `exchanged`. `version` of the pool's settings is in the first row, the rest in the others.
CREATE TYPE sprat.exchanged_v2 AS (
    now float8, settled int[], claimed_at float8[], started bool, version int,
    ready_at float8, id text, data text, attempts int, max_retries int, priority int, tenant text,
    grp text, key text, epoch int, token text, checkpoint text, progress float8,
    progress_note text, error text, created_at float8, given_back int, task text, transients int
);

-- Workers of version 1 would ignore an item's task: they finish what they hold, and leave.
UPDATE sprat.worker_registry
SET status = 'terminating', reason = 'sprat was upgraded: a worker of the new version takes over'
WHERE status = 'active';
UPDATE sprat.worker_registry
SET status = 'terminated', ended_at = sprat.clock(),
    reason = 'sprat was upgraded: a worker of the new version takes over'
WHERE status = 'starting';
SELECT pg_notify('sprat.bell', '');
