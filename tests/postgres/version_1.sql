-- The functions that a store of schema version 1 has, as that version created them.


CREATE OR REPLACE FUNCTION sprat.shard() RETURNS int LANGUAGE sql STABLE AS
$$ SELECT pg_backend_pid() % 16 $$;

CREATE OR REPLACE FUNCTION sprat.count(
    pool_ text, grp_ text, pending_ bigint, delayed_ bigint, backlog_ bigint, claimed_ bigint,
    done_ bigint, poisoned_ bigint, cancelled_ bigint
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE sprat.pool_count SET pending = pending + pending_, delayed = delayed + delayed_,
        backlog = backlog + backlog_, claimed = claimed + claimed_, done = done + done_,
        poisoned = poisoned + poisoned_, cancelled = cancelled + cancelled_
    WHERE pool_name = pool_ AND grp = grp_ AND shard = sprat.shard();
    IF NOT FOUND THEN
        INSERT INTO sprat.pool_count AS c VALUES (pool_, grp_, sprat.shard(), pending_, delayed_,
            backlog_, claimed_, done_, poisoned_, cancelled_)
        ON CONFLICT (pool_name, grp, shard) DO UPDATE SET pending = c.pending + pending_,
            delayed = c.delayed + delayed_, backlog = c.backlog + backlog_,
            claimed = c.claimed + claimed_, done = c.done + done_,
            poisoned = c.poisoned + poisoned_, cancelled = c.cancelled + cancelled_;
    END IF;
END $$;

CREATE OR REPLACE FUNCTION sprat.ring(pool_ text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM sprat.pool WHERE name = pool_ AND listened_until > sprat.clock();
    IF FOUND THEN
        PERFORM pg_notify('sprat.bell', pool_);
    END IF;
END $$;

CREATE OR REPLACE FUNCTION sprat.exchange(
    pool_ text, worker_ text, incarnation_ int,
    ids_ text[], tokens_ text[], results_ text[],
    start_id_ text, start_token_ text,
    n_ int, token_ text, ahead_ int, again_ bool
) RETURNS SETOF sprat.exchanged LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off
SET enable_mergejoin = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    now_ float8;
    may_claim bool := false;
    head sprat.exchanged;
    worker sprat.worker_registry%ROWTYPE;
    pool sprat.pool%ROWTYPE;
    done int := 0;
    claimed int := 0;
    chosen bigint[];
BEGIN
    IF n_ > 0 AND ids_ IS NULL AND start_id_ IS NULL AND NOT again_
        AND sprat.is_in_vain(pool_, worker_)
    THEN
        head.now := sprat.clock();
        head.started := true;
        RETURN NEXT head;
        RETURN;
    END IF;
    IF n_ > 0 THEN
        IF again_ THEN  -- the first call may still run: let it end
            PERFORM 1 FROM sprat.worker_registry WHERE worker_id = worker_ FOR UPDATE;
        END IF;
        SELECT * INTO worker FROM sprat.worker_registry WHERE worker_id = worker_ FOR SHARE;
        IF NOT FOUND THEN
            RAISE EXCEPTION USING ERRCODE = 'SP002', MESSAGE = worker_;
        END IF;
        may_claim := worker.status = 'active'
            AND (incarnation_ IS NULL OR incarnation_ = worker.incarnation);
        SELECT * INTO pool FROM sprat.pool WHERE name = pool_;
        IF pool.has_tenants AND may_claim THEN  -- limits and turns: one claim at a time
            SELECT * INTO pool FROM sprat.pool WHERE name = pool_ FOR NO KEY UPDATE;
        END IF;
    END IF;
    now_ := sprat.clock();
    head.now := now_;
    head.started := true;
    IF ids_ IS NOT NULL THEN
        SELECT * INTO head.settled, head.claimed_at, done
        FROM sprat.complete(pool_, ids_, tokens_, results_, now_);
    END IF;
    IF start_id_ IS NOT NULL THEN
        head.started := sprat.start(start_id_, start_token_, now_);
    END IF;
    RETURN NEXT head;
    IF may_claim AND again_ THEN
        RETURN QUERY SELECT * FROM sprat.claimed_as(worker_, token_);
        may_claim := NOT FOUND;
    END IF;
    IF may_claim AND worker.lease_until - now_ < worker.lease_seconds / 2 THEN
        UPDATE sprat.worker_registry
        SET last_heartbeat = now_, lease_until = now_ + lease_seconds WHERE worker_id = worker_;
    END IF;
    IF may_claim AND pool.name IS NOT NULL AND coalesce(pool.paused_until, 0) <= now_ THEN
        PERFORM sprat.promote(pool_, now_);
        IF pool.has_lanes THEN
            chosen := sprat.in_turn(pool, n_, worker.capabilities, true);
            RETURN QUERY SELECT * FROM sprat.take(pool_, chosen, worker_, token_, ahead_, now_);
            PERFORM sprat.count(pool_, grp, -count(*), 0, 0, count(*), 0, 0, 0)
            FROM sprat.work_pool WHERE pool_name = pool_ AND seq = ANY (chosen)
            GROUP BY grp ORDER BY grp;
        ELSE
            RETURN QUERY SELECT * FROM sprat.take_next(pool_, n_, worker_, token_, ahead_, now_);
            GET DIAGNOSTICS claimed = ROW_COUNT;
        END IF;
    END IF;
    IF claimed > 0 OR done > 0 THEN
        PERFORM sprat.count(pool_, '', -claimed, 0, 0, claimed - done, done, 0, 0);
    END IF;
END $$;

CREATE OR REPLACE FUNCTION sprat.is_in_vain(pool_ text, worker_ text)
RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
    now_ float8 := sprat.clock();
BEGIN
    PERFORM 1 FROM sprat.worker_registry
    WHERE worker_id = worker_ AND lease_until - now_ >= lease_seconds / 2;
    RETURN FOUND
        AND NOT EXISTS (SELECT 1 FROM sprat.work_pool
            WHERE pool_name = pool_ AND status = 'pending' AND run_at IS NULL LIMIT 1)
        AND NOT EXISTS (SELECT 1 FROM sprat.work_pool
            WHERE pool_name = pool_ AND status = 'pending' AND run_at <= now_ LIMIT 1);
END $$;

CREATE OR REPLACE FUNCTION sprat.complete(
    pool_ text, ids_ text[], tokens_ text[], results_ text[], now_ float8,
    OUT settled int[], OUT claimed_at float8[], OUT done int
) LANGUAGE plpgsql AS $$
DECLARE
    tenants bool;
    elsewhere text[];  -- a pool and a group for each item that is not counted in `done`
    unknown text;
    change record;
    again int[];
BEGIN
    WITH ended AS (
        UPDATE sprat.work_pool w SET status = 'done', result = given.result, error = NULL,
            finished_at = now_, attempts = w.attempts + (w.ahead > 0)::int, ahead = 0,
            suspect = false
        FROM unnest(ids_, tokens_, results_) WITH ORDINALITY AS given (id, token, result, place)
        WHERE w.id = given.id AND w.token = given.token AND w.status = 'claimed'
        RETURNING given.place::int, w.pool_name, w.grp, w.tenant, w.claimed_at)
    SELECT array_agg(ended.place), array_agg(ended.claimed_at),
           count(*) FILTER (WHERE ended.pool_name = pool_ AND ended.grp = ''),
           coalesce(bool_or(ended.tenant <> ''), false),
           array_agg(ARRAY[ended.pool_name, ended.grp])
               FILTER (WHERE ended.pool_name <> pool_ OR ended.grp <> '')
    INTO settled, claimed_at, done, tenants, elsewhere
    FROM ended;
    IF elsewhere IS NOT NULL THEN
        FOR change IN
            SELECT elsewhere[i][1] AS pool_name, elsewhere[i][2] AS grp, count(*) AS n
            FROM generate_series(1, array_length(elsewhere, 1)) AS i GROUP BY 1, 2 ORDER BY 1, 2
        LOOP
            PERFORM sprat.count(change.pool_name, change.grp, 0, 0, 0, -change.n, change.n, 0, 0);
        END LOOP;
    END IF;
    IF tenants THEN
        PERFORM sprat.ring(pool_);  -- another item of this tenant may run now
    END IF;
    IF coalesce(cardinality(settled), 0) < cardinality(ids_) THEN
        SELECT array_agg(given.place::int) FILTER (WHERE w.status = 'done'
                   AND w.token = given.token AND w.result IS NOT DISTINCT FROM given.result),
               min(given.id) FILTER (WHERE w.id IS NULL)
        INTO again, unknown
        FROM unnest(ids_, tokens_, results_) WITH ORDINALITY AS given (id, token, result, place)
        LEFT JOIN sprat.work_pool w ON w.id = given.id
        WHERE settled IS NULL OR given.place <> ALL (settled);
        IF unknown IS NOT NULL THEN
            RAISE EXCEPTION USING ERRCODE = 'SP001', MESSAGE = unknown;
        END IF;
        settled := settled || again;  -- they repeat a settle whose reply was lost
    END IF;
END $$;

CREATE OR REPLACE FUNCTION sprat.start(id_ text, token_ text, now_ float8)
RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
    holds bool;
BEGIN
    UPDATE sprat.work_pool SET attempts = attempts + 1, ahead = 0, claimed_at = now_
    WHERE id = id_ AND token = token_ AND status = 'claimed' AND ahead > 0;
    IF FOUND THEN
        RETURN true;
    END IF;
    SELECT status = 'claimed' AND token IS NOT DISTINCT FROM token_ INTO holds
    FROM sprat.work_pool WHERE id = id_;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'SP001', MESSAGE = id_;
    END IF;
    RETURN holds;
END $$;

CREATE OR REPLACE FUNCTION sprat.promote(pool_ text, now_ float8)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    change record;
BEGIN
    PERFORM 1 FROM sprat.work_pool
    WHERE pool_name = pool_ AND status = 'pending' AND run_at <= now_ LIMIT 1;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    FOR change IN
        WITH due AS (
            SELECT id FROM sprat.work_pool
            WHERE pool_name = pool_ AND status = 'pending' AND run_at <= now_
            ORDER BY run_at LIMIT 1000 FOR UPDATE SKIP LOCKED),
        ready AS (
            UPDATE sprat.work_pool w SET ready_at = run_at, run_at = NULL
            FROM due WHERE w.id = due.id
            RETURNING w.grp)
        SELECT grp, count(*) AS n FROM ready GROUP BY grp ORDER BY grp
    LOOP
        PERFORM sprat.count(pool_, change.grp, 0, -change.n, 0, 0, 0, 0, 0);
    END LOOP;
END $$;

CREATE OR REPLACE FUNCTION sprat.take_next(
    pool_ text, n_ int, worker_ text, token_ text, ahead_ int, now_ float8
) RETURNS SETOF sprat.exchanged LANGUAGE plpgsql AS $$
DECLARE
    rows tid[];
    alone bool[];
    cut int;
BEGIN
    SELECT array_agg(next.row), array_agg(next.alone) INTO rows, alone
    FROM (SELECT ctid AS row, suspect OR attempts + 1 >= max_retries AS alone
          FROM sprat.work_pool
          WHERE pool_name = pool_ AND status = 'pending' AND run_at IS NULL
          ORDER BY priority DESC, tenant, grp, seq LIMIT n_ FOR UPDATE SKIP LOCKED) AS next;
    cut := array_position(alone, true, 2);
    IF cut IS NOT NULL THEN
        rows := rows[:cut - 1];
    END IF;
    RETURN QUERY WITH taken AS (
        UPDATE sprat.work_pool w SET status = 'claimed', claimed_by = worker_, claimed_at = now_,
            token = token_ || to_hex(w.seq), epoch = w.epoch + 1,
            attempts = w.attempts + (w.ctid = rows[1])::int,
            ahead = CASE WHEN w.ctid = rows[1] THEN 0 ELSE ahead_ END
        WHERE w.ctid = ANY (rows) AND w.status = 'pending'
        RETURNING w.*)
    SELECT NULL::float8, NULL::int[], NULL::float8[], NULL::bool, t.ready_at, t.id, t.data,
           t.attempts + (t.ahead > 0)::int, t.max_retries, t.priority, t.tenant, t.grp, t.key,
           t.epoch, t.token, t.checkpoint, t.progress, t.progress_note, t.error, t.created_at,
           t.given_back
    FROM taken t ORDER BY t.priority DESC, t.seq;
END $$;

CREATE OR REPLACE FUNCTION sprat.take(
    pool_ text, seqs_ bigint[], worker_ text, token_ text, ahead_ int, now_ float8
) RETURNS SETOF sprat.exchanged LANGUAGE sql AS $$
    WITH taken AS (
        UPDATE sprat.work_pool w SET status = 'claimed', claimed_by = worker_, claimed_at = now_,
            token = token_ || to_hex(w.seq), epoch = w.epoch + 1,
            attempts = w.attempts + (w.seq = seqs_[1])::int,
            ahead = CASE WHEN w.seq = seqs_[1] THEN 0 ELSE ahead_ END
        WHERE w.pool_name = pool_ AND w.seq = ANY (seqs_)
        RETURNING w.*)
    SELECT NULL::float8, NULL::int[], NULL::float8[], NULL::bool, t.ready_at, t.id, t.data,
           t.attempts + (t.ahead > 0)::int, t.max_retries, t.priority, t.tenant, t.grp, t.key,
           t.epoch, t.token, t.checkpoint, t.progress, t.progress_note, t.error, t.created_at,
           t.given_back
    FROM taken t ORDER BY array_position(seqs_, t.seq)
$$;

CREATE OR REPLACE FUNCTION sprat.claimed_as(worker_ text, token_ text)
RETURNS SETOF sprat.exchanged LANGUAGE sql AS $$
    SELECT NULL::float8, NULL::int[], NULL::float8[], NULL::bool, t.ready_at, t.id, t.data,
           t.attempts + (t.ahead > 0)::int, t.max_retries, t.priority, t.tenant, t.grp, t.key,
           t.epoch, t.token, t.checkpoint, t.progress, t.progress_note, t.error, t.created_at,
           t.given_back
    FROM sprat.work_pool t
    WHERE t.claimed_by = worker_ AND t.status = 'claimed' AND starts_with(t.token, token_)
    ORDER BY t.ahead > 0, t.seq
$$;

CREATE OR REPLACE FUNCTION sprat.push(
    pool_ text, ids_ text[], data_ text[], max_retries_ int[], priority_ int[], delay_ float8[],
    tenant_ text[], grp_ text[], key_ text[], backlog_ bool[],
    OUT ids text[], OUT others text[]
) LANGUAGE plpgsql
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    now_ float8 := sprat.clock();
    added int := 0;
    change record;
BEGIN
    PERFORM sprat.know_pool(pool_, tenant_ IS NOT NULL OR grp_ IS NOT NULL, tenant_ IS NOT NULL);
    FOR change IN
        WITH stored AS (
            INSERT INTO sprat.work_pool (id, pool_name, data, status, max_retries, priority, tenant,
                                         grp, key, created_at, ready_at, run_at)
            SELECT id, pool_, data,
                   CASE WHEN coalesce(parked, backlog_[1]) THEN 'backlog' ELSE 'pending' END,
                   coalesce(retries, max_retries_[1]), coalesce(priority, priority_[1]),
                   coalesce(tenant, tenant_[1], ''), coalesce(grp, grp_[1], ''), key,
                   now_, coalesce(due, now_), due
            FROM unnest(ids_, data_, max_retries_, priority_, delay_, tenant_, grp_, key_, backlog_)
                 WITH ORDINALITY AS given (id, data, retries, priority, delay, tenant, grp, key,
                                           parked, place),
                 LATERAL (SELECT CASE WHEN coalesce(delay, delay_[1]) > 0
                                       AND coalesce(parked, backlog_[1]) IS NOT TRUE
                                 THEN now_ + coalesce(delay, delay_[1]) END) AS at (due)
            ORDER BY place
            ON CONFLICT DO NOTHING
            RETURNING work_pool.grp, work_pool.status, work_pool.run_at)
        SELECT stored.grp, count(*) FILTER (WHERE status = 'pending') AS pending,
               count(run_at) AS delayed, count(*) FILTER (WHERE status = 'backlog') AS backlog,
               count(*) AS n
        FROM stored GROUP BY stored.grp ORDER BY stored.grp
    LOOP
        added := added + change.n;
        PERFORM sprat.count(pool_, change.grp, change.pending, change.delayed, change.backlog,
                            0, 0, 0, 0);
    END LOOP;
    IF key_ IS NOT NULL THEN
        SELECT array_agg(coalesce(w.id, given.id) ORDER BY place),
               array_agg(w.data ORDER BY place)
        INTO ids, others
        FROM unnest(ids_, key_) WITH ORDINALITY AS given (id, key, place)
        LEFT JOIN sprat.work_pool w ON w.pool_name = pool_ AND w.key = given.key;
    ELSIF added > 0 AND added < cardinality(ids_) THEN
        RAISE EXCEPTION USING ERRCODE = 'SP003', MESSAGE = 'some, but not all, are there';
    END IF;
    IF added > 0 THEN
        PERFORM sprat.note(pool_, now_, 'arrive', added);
        PERFORM sprat.ring(pool_);
    END IF;
END $$;

CREATE OR REPLACE FUNCTION sprat.push_one(
    pool_ text, id_ text, data_ text, max_retries_ int, priority_ int
) RETURNS void LANGUAGE plpgsql
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    now_ float8 := sprat.clock();
    shard_ int := sprat.shard();
    listened float8;
    paused float8;
BEGIN
    SELECT listened_until, paused_until INTO listened, paused FROM sprat.pool WHERE name = pool_;
    IF NOT FOUND THEN
        PERFORM sprat.know_pool(pool_, false, false);
    END IF;
    INSERT INTO sprat.work_pool (id, pool_name, data, status, max_retries, priority, tenant, grp,
                                 created_at, ready_at)
    VALUES (id_, pool_, data_, 'pending', max_retries_, priority_, '', '', now_, now_)
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    UPDATE sprat.pool_count SET pending = pending + 1
    WHERE pool_name = pool_ AND grp = '' AND shard = shard_;
    IF NOT FOUND THEN
        PERFORM sprat.count(pool_, '', 1, 0, 0, 0, 0, 0, 0);
    END IF;
    UPDATE sprat.pool_stats SET n = n + 1
    WHERE pool_name = pool_ AND width = 10 AND at = floor(now_ / 10)::bigint * 10
      AND kind = 'arrive' AND bin = 0 AND shard = shard_;
    IF NOT FOUND THEN
        PERFORM sprat.note(pool_, now_, 'arrive', 1);
    END IF;
    IF listened > now_ THEN
        PERFORM pg_notify('sprat.bell',
            pool_ || CASE WHEN coalesce(paused, 0) <= now_ THEN ' ready' ELSE '' END);
    END IF;
END $$;

CREATE OR REPLACE FUNCTION sprat.know_pool(pool_ text, lanes_ bool, tenants_ bool)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM sprat.pool WHERE name = pool_
        AND (has_lanes OR NOT lanes_) AND (has_tenants OR NOT tenants_);
    IF NOT FOUND THEN
        INSERT INTO sprat.pool AS p (name, has_lanes, has_tenants) VALUES (pool_, lanes_, tenants_)
        ON CONFLICT (name) DO UPDATE SET has_lanes = p.has_lanes OR lanes_,
            has_tenants = p.has_tenants OR tenants_;
        PERFORM pg_notify('sprat.bell', pool_);  -- who waits for a new pool is not noted in it
    END IF;
END $$;

CREATE OR REPLACE FUNCTION sprat.note(pool_ text, now_ float8, kind_ text, n_ bigint)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN  -- not a function in SQL: that would be planned at every call
    INSERT INTO sprat.pool_stats AS s
    VALUES (pool_, 10, floor(now_ / 10)::bigint * 10, kind_, 0, sprat.shard(), n_, 0, 0)
    ON CONFLICT (pool_name, width, at, kind, bin, shard) DO UPDATE SET n = s.n + excluded.n;
END $$;
