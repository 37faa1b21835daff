-- Which items are next: priority, then tenants in turn, then age, for what a worker can do.
--
-- A *lane* is the ready items of one pool, tenant and group; the index work_pool_lanes holds lanes
-- side by side, each by priority and then in order of arrival. A pool that never saw a tenant or a
-- group has one lane, and the index order is the claim order (sprat.take_next_v2). Otherwise the
-- tenants are found by hopping through the index from one to the next, and the heads of the lanes that
-- the worker can do are looked up and compared: the cost grows with the number of tenants that have
-- work and of the worker's capabilities, never with the number of items, priorities or groups. A claim
-- in a pool with tenants holds the lock on the pool's row, so that turns and limits are exact.

-- The first item of each lane for a worker with these capabilities.
CREATE OR REPLACE FUNCTION sprat.heads(pool_ text, capabilities_ text[])
RETURNS TABLE (tenant text, grp text, priority int, seq bigint) LANGUAGE sql STABLE AS $$
    WITH RECURSIVE having_work AS (
        (SELECT w.tenant FROM sprat.work_pool w
         WHERE pool_name = pool_ AND status = 'pending' AND run_at IS NULL
         ORDER BY w.tenant LIMIT 1)
        UNION ALL
        SELECT next.* FROM having_work, LATERAL (
            SELECT w.tenant FROM sprat.work_pool w
            WHERE pool_name = pool_ AND status = 'pending' AND run_at IS NULL
              AND w.tenant > having_work.tenant
            ORDER BY w.tenant LIMIT 1) AS next)
    SELECT having_work.tenant, able.grp, head.priority, head.seq
    FROM having_work
    CROSS JOIN (SELECT DISTINCT unnest('{""}'::text[] || capabilities_) AS grp) AS able
    CROSS JOIN LATERAL (
        SELECT w.priority, w.seq FROM sprat.work_pool w
        WHERE pool_name = pool_ AND status = 'pending' AND run_at IS NULL
          AND w.tenant = having_work.tenant AND w.grp = able.grp
        ORDER BY w.priority DESC, w.seq LIMIT 1) AS head
$$;

-- For clients of version 2, which look for the oldest item with it: the first items of one priority,
-- for a worker with these capabilities (NULL: of all).
CREATE OR REPLACE FUNCTION sprat.lanes(pool_ text, priority_ int, capabilities_ text[])
RETURNS TABLE (tenant text, grp text, seq bigint) LANGUAGE sql STABLE AS $$
    WITH RECURSIVE lane AS (
        (SELECT w.tenant, w.grp, w.seq FROM sprat.work_pool w
         WHERE pool_name = pool_ AND status = 'pending' AND run_at IS NULL AND priority = priority_
         ORDER BY w.tenant, w.grp, w.seq LIMIT 1)
        UNION ALL
        SELECT next.* FROM lane, LATERAL (
            SELECT w.tenant, w.grp, w.seq FROM sprat.work_pool w
            WHERE pool_name = pool_ AND status = 'pending' AND run_at IS NULL
              AND priority = priority_ AND (w.tenant, w.grp) > (lane.tenant, lane.grp)
            ORDER BY w.tenant, w.grp, w.seq LIMIT 1) AS next)
    SELECT * FROM lane WHERE capabilities_ IS NULL OR grp = '' OR grp = ANY (capabilities_)
$$;

-- Up to n_ items, tenants in turn; all but the first may run ahead. `take_` locks them and writes
-- down the turns; without it this only looks.
CREATE OR REPLACE FUNCTION sprat.in_turn(
    pool_ sprat.pool, n_ int, capabilities_ text[], take_ bool
) RETURNS bigint[] LANGUAGE plpgsql AS $$
DECLARE
    chosen bigint[] := '{}';
    tenants text[];
    grps text[];
    priorities int[];
    heads bigint[];     -- NULL: the lane is empty
    turns bigint[];     -- of each lane's tenant
    best int;
    follower record;
    alone bool;
    locked bool;
    last bigint := pool_.turn;
    limits jsonb := sprat.room(pool_);  -- by tenant, how many more may run; '' for all others
BEGIN
    SELECT array_agg(l.tenant), array_agg(l.grp), array_agg(l.priority), array_agg(l.seq),
           array_agg(coalesce(t.turn, 0))
    INTO tenants, grps, priorities, heads, turns
    FROM sprat.heads(pool_.name, capabilities_) l
    LEFT JOIN sprat.tenant_turn t ON t.pool_name = pool_.name AND t.tenant = l.tenant;
    LOOP
        SELECT place INTO best
        FROM unnest(tenants, priorities, heads, turns)
            WITH ORDINALITY AS l (tenant, priority, head, turn, place)
        WHERE head IS NOT NULL AND (l.tenant = '' OR limits IS NULL
            OR coalesce(limits -> l.tenant, limits -> '')::int > 0)
        ORDER BY l.priority DESC, turn, head LIMIT 1;
        EXIT WHEN best IS NULL;
        IF take_ THEN
            SELECT suspect OR attempts + 1 >= max_retries INTO alone FROM sprat.work_pool
            WHERE pool_name = pool_.name AND seq = heads[best]
              AND status = 'pending' AND run_at IS NULL FOR UPDATE SKIP LOCKED;
            locked := FOUND;
        ELSE
            locked := true;
        END IF;
        IF locked THEN
            EXIT WHEN take_ AND alone AND cardinality(chosen) > 0;
            chosen := chosen || heads[best];
            last := last + 1;
            FOR i IN 1 .. cardinality(tenants) LOOP
                IF tenants[i] = tenants[best] THEN
                    turns[i] := last;
                END IF;
            END LOOP;
            IF take_ AND pool_.has_tenants THEN
                INSERT INTO sprat.tenant_turn VALUES (pool_.name, tenants[best], last)
                ON CONFLICT (pool_name, tenant) DO UPDATE SET turn = excluded.turn;
            END IF;
            IF limits IS NOT NULL AND tenants[best] <> '' THEN
                limits := limits || jsonb_build_object(tenants[best],
                    coalesce(limits -> tenants[best], limits -> '')::int - 1);
            END IF;
            EXIT WHEN cardinality(chosen) = n_;
        END IF;
        SELECT w.priority, w.seq INTO follower FROM sprat.work_pool w
        WHERE pool_name = pool_.name AND status = 'pending' AND run_at IS NULL
          AND w.tenant = tenants[best] AND w.grp = grps[best]
          AND w.priority = priorities[best] AND w.seq > heads[best]
        ORDER BY w.seq LIMIT 1;
        IF NOT FOUND THEN
            SELECT w.priority, w.seq INTO follower FROM sprat.work_pool w
            WHERE pool_name = pool_.name AND status = 'pending' AND run_at IS NULL
              AND w.tenant = tenants[best] AND w.grp = grps[best]
              AND w.priority < priorities[best]
            ORDER BY w.priority DESC, w.seq LIMIT 1;
        END IF;
        priorities[best] := follower.priority;
        heads[best] := follower.seq;
    END LOOP;
    PERFORM sprat.keep_turn(pool_, last) WHERE take_;
    RETURN chosen;
END $$;

CREATE OR REPLACE FUNCTION sprat.keep_turn(pool_ sprat.pool, last_ bigint)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF pool_.has_tenants AND last_ <> pool_.turn THEN
        UPDATE sprat.pool SET turn = last_ WHERE name = pool_.name;
    END IF;
END $$;

-- How many more items of each tenant may run: NULL when there is no limit at all. Only tenants that
-- have something running, or a limit of their own, are named; '' stands for the others.
CREATE OR REPLACE FUNCTION sprat.room(pool_ sprat.pool) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    settings jsonb;
    usual int;
    own jsonb;
BEGIN
    IF NOT pool_.has_tenants THEN
        RETURN NULL;
    END IF;
    settings := pool_.settings::jsonb;
    usual := (settings ->> 'tenant_limit')::int;
    own := coalesce(nullif(settings -> 'tenant_limits', 'null'), '{}');
    IF usual IS NULL AND own = '{}' THEN
        RETURN NULL;
    END IF;
    usual := coalesce(usual, 2147483647);
    RETURN jsonb_build_object('', usual) || own || coalesce((
        SELECT jsonb_object_agg(tenant, coalesce((own ->> tenant)::int, usual) - n)
        FROM (SELECT tenant, count(*) AS n FROM sprat.work_pool
              WHERE pool_name = pool_.name AND status = 'claimed' AND tenant <> ''
              GROUP BY tenant) AS running), '{}');
END $$;

-- What a waiter sees. `leaves`: the worker has to go; `pause`: until something changes by itself.
CREATE OR REPLACE FUNCTION sprat.look(
    pool_ text, worker_ text, incarnation_ int,
    OUT has_work bool, OUT leaves bool, OUT pause float8
) LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    now_ float8 := sprat.clock();
    pool sprat.pool%ROWTYPE;
    worker sprat.worker_registry%ROWTYPE;
    due float8;
BEGIN
    leaves := false;
    has_work := false;
    IF worker_ IS NOT NULL THEN
        SELECT * INTO worker FROM sprat.worker_registry WHERE worker_id = worker_;
        IF NOT FOUND THEN
            RAISE EXCEPTION USING ERRCODE = 'SP002', MESSAGE = worker_;
        END IF;
        leaves := worker.status <> 'active'
            OR coalesce(incarnation_ <> worker.incarnation, false);
    END IF;
    SELECT * INTO pool FROM sprat.pool WHERE name = pool_;
    IF NOT FOUND OR leaves THEN
        RETURN;
    END IF;
    SELECT min(run_at) INTO due FROM sprat.work_pool
    WHERE pool_name = pool_ AND status = 'pending' AND run_at IS NOT NULL;
    has_work := coalesce(due <= now_, false);
    IF coalesce(pool.paused_until, 0) > now_ THEN
        has_work := false;
        due := least(nullif(greatest(due, now_), now_), pool.paused_until);
    ELSIF NOT has_work AND pool.has_lanes AND worker_ IS NOT NULL THEN
        has_work := cardinality(sprat.in_turn(pool, 1, worker.capabilities, false)) > 0;
    ELSIF NOT has_work THEN
        has_work := EXISTS (SELECT 1 FROM sprat.work_pool
            WHERE pool_name = pool_ AND status = 'pending' AND run_at IS NULL LIMIT 1);
    END IF;
    pause := due - now_;
END $$;

-- Before a waiter falls asleep: from now on, for a while, new work is announced.
CREATE OR REPLACE FUNCTION sprat.listening(pool_ text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE sprat.pool SET listened_until = sprat.clock() + 30
    WHERE name = pool_ AND listened_until < sprat.clock() + 15;
END $$;
