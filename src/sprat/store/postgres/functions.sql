-- The verbs that workers call all day, each one call: one round trip, one transaction.
--
-- They are created anew whenever a client with a newer schema version comes; what they do is in
-- docs/learn/protocol.md. Errors for the client carry a code of ours: SP001 an unknown item, SP002
-- an unknown worker, SP003 a push of which some items, but not all, are there already.
--
-- Locks are taken in this order everywhere: mark, worker, pool, items, counts.
--
-- Plans must not depend on statistics that are missing or an hour old: a queue is empty now and
-- full a minute later. The SET clauses leave the planner one way, by the index made for the query.

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

-- Wake those who wait for work in this pool; costs nothing when nobody does.
CREATE OR REPLACE FUNCTION sprat.ring(pool_ text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM sprat.pool WHERE name = pool_ AND listened_until > sprat.clock();
    IF FOUND THEN
        PERFORM pg_notify('sprat.bell', pool_);
    END IF;
END $$;

-- -- claiming and settling ----------------------------------------------------------------------

-- Complete the given items (unique ids), start one, claim up to n_, in one step. With `again_` the
-- call repeats one whose reply was lost: what that one claimed (under these tokens) is the answer.
-- With `touch_` it also notes that the store works (marks.sql). With `quiet_`, where leases have to
-- be renewed first, it does nothing, and the client calls again.
CREATE OR REPLACE FUNCTION sprat.exchange_v2(
    pool_ text, worker_ text, incarnation_ int,
    ids_ text[], tokens_ text[], results_ text[],
    start_id_ text, start_token_ text,
    n_ int, token_ text, ahead_ int, again_ bool, touch_ float8, quiet_ float8
) RETURNS SETOF sprat.exchanged_v2 LANGUAGE plpgsql
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off
SET enable_mergejoin = off SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    now_ float8;
    may_claim bool := false;
    renews bool;
    head sprat.exchanged_v2;
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
        head.version := coalesce((SELECT version FROM sprat.pool WHERE name = pool_), 0);
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
        head.version := coalesce(pool.version, 0);
    END IF;
    now_ := sprat.clock();
    renews := may_claim AND (worker.renewals > 0
        OR worker.lease_until - now_ < worker.lease_seconds / 2);
    IF (renews OR touch_ IS NOT NULL) AND quiet_ IS NOT NULL
        AND NOT (sprat.note_mark(touch_, quiet_)).steady
    THEN
        RETURN NEXT head;  -- `now` is NULL: nothing was done
        RETURN;
    END IF;
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
        RETURN QUERY SELECT * FROM sprat.claimed_as_v2(worker_, token_);
        may_claim := NOT FOUND;
    END IF;
    IF may_claim AND renews THEN
        UPDATE sprat.worker_registry
        SET last_heartbeat = now_, lease_until = now_ + lease_seconds, renewals = 0
        WHERE worker_id = worker_;
    END IF;
    IF may_claim AND pool.name IS NOT NULL AND coalesce(pool.paused_until, 0) <= now_ THEN
        PERFORM sprat.promote(pool_, now_);
        IF pool.has_lanes THEN
            chosen := sprat.in_turn(pool, n_, worker.capabilities, true);
            RETURN QUERY SELECT * FROM sprat.take_v2(pool_, chosen, worker_, token_, ahead_, now_);
            PERFORM sprat.count(pool_, grp, -count(*), 0, 0, count(*), 0, 0, 0)
            FROM sprat.work_pool WHERE pool_name = pool_ AND seq = ANY (chosen)
            GROUP BY grp ORDER BY grp;
        ELSE
            RETURN QUERY SELECT * FROM sprat.take_next_v2(pool_, n_, worker_, token_, ahead_, now_);
            GET DIAGNOSTICS claimed = ROW_COUNT;
        END IF;
    END IF;
    IF claimed > 0 OR done > 0 THEN
        PERFORM sprat.count(pool_, '', -claimed, 0, 0, claimed - done, done, 0, 0);
    END IF;
END $$;

-- Whether a claim would find nothing and write nothing but its lock on the worker. Of many who are
-- woken for one item all but one stop here, and wait for no disk.
CREATE OR REPLACE FUNCTION sprat.is_in_vain(pool_ text, worker_ text)
RETURNS bool LANGUAGE plpgsql AS $$
DECLARE
    now_ float8 := sprat.clock();
BEGIN
    PERFORM 1 FROM sprat.worker_registry
    WHERE worker_id = worker_ AND lease_until - now_ >= lease_seconds / 2 AND renewals = 0;
    RETURN FOUND
        AND NOT EXISTS (SELECT 1 FROM sprat.work_pool
            WHERE pool_name = pool_ AND status = 'pending' AND run_at IS NULL LIMIT 1)
        AND NOT EXISTS (SELECT 1 FROM sprat.work_pool
            WHERE pool_name = pool_ AND status = 'pending' AND run_at <= now_ LIMIT 1);
END $$;

-- Complete items. `done` counts those of this pool that have no group; others are counted here.
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

-- Make delayed items ready whose time has come.
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

-- The next items of a pool without lanes. An item that has to run alone can only be the first of a
-- batch: the batch ends before it.
CREATE OR REPLACE FUNCTION sprat.take_next_v2(
    pool_ text, n_ int, worker_ text, token_ text, ahead_ int, now_ float8
) RETURNS SETOF sprat.exchanged_v2 LANGUAGE plpgsql AS $$
DECLARE
    rows tid[];
    alone bool[];
    cut int;
BEGIN
    SELECT array_agg(next.row), array_agg(next.alone) INTO rows, alone
    FROM (SELECT ctid AS row, suspect OR attempts + 1 >= max_retries AS alone
          FROM sprat.work_pool
          WHERE pool_name = pool_ AND status = 'pending' AND run_at IS NULL
            AND tenant = '' AND grp = ''
          ORDER BY priority DESC, seq LIMIT n_ FOR UPDATE SKIP LOCKED) AS next;
    cut := array_position(alone, true, 2);
    IF cut IS NOT NULL THEN
        rows := rows[:cut - 1];
    END IF;
    RETURN QUERY WITH taken AS (
        UPDATE sprat.work_pool w SET status = 'claimed', claimed_by = worker_, claimed_at = now_,
            token = token_ || to_hex(w.seq), epoch = w.epoch + 1,
            attempts = w.attempts + (w.ctid = rows[1])::int,
            ahead = CASE WHEN w.ctid = rows[1] THEN 0 ELSE ahead_ END, hold = NULL
        WHERE w.ctid = ANY (rows) AND w.status = 'pending'
        RETURNING w.*)
    SELECT NULL::float8, NULL::int[], NULL::float8[], NULL::bool, NULL::int, t.ready_at,
           t.id, t.data, t.attempts + (t.ahead > 0)::int, t.max_retries, t.priority, t.tenant,
           t.grp, t.key, t.epoch, t.token, t.checkpoint, t.progress, t.progress_note, t.error,
           t.created_at, t.given_back, t.task, t.transients
    FROM taken t ORDER BY t.priority DESC, t.seq;
END $$;

-- These items of a pool, locked already, in this order.
CREATE OR REPLACE FUNCTION sprat.take_v2(
    pool_ text, seqs_ bigint[], worker_ text, token_ text, ahead_ int, now_ float8
) RETURNS SETOF sprat.exchanged_v2 LANGUAGE sql AS $$
    WITH taken AS (
        UPDATE sprat.work_pool w SET status = 'claimed', claimed_by = worker_, claimed_at = now_,
            token = token_ || to_hex(w.seq), epoch = w.epoch + 1,
            attempts = w.attempts + (w.seq = seqs_[1])::int,
            ahead = CASE WHEN w.seq = seqs_[1] THEN 0 ELSE ahead_ END, hold = NULL
        WHERE w.pool_name = pool_ AND w.seq = ANY (seqs_)
        RETURNING w.*)
    SELECT NULL::float8, NULL::int[], NULL::float8[], NULL::bool, NULL::int, t.ready_at,
           t.id, t.data, t.attempts + (t.ahead > 0)::int, t.max_retries, t.priority, t.tenant,
           t.grp, t.key, t.epoch, t.token, t.checkpoint, t.progress, t.progress_note, t.error,
           t.created_at, t.given_back, t.task, t.transients
    FROM taken t ORDER BY array_position(seqs_, t.seq)
$$;

-- What this worker holds under tokens that begin like this: the answer that was lost.
CREATE OR REPLACE FUNCTION sprat.claimed_as_v2(worker_ text, token_ text)
RETURNS SETOF sprat.exchanged_v2 LANGUAGE sql AS $$
    SELECT NULL::float8, NULL::int[], NULL::float8[], NULL::bool, NULL::int, t.ready_at,
           t.id, t.data, t.attempts + (t.ahead > 0)::int, t.max_retries, t.priority, t.tenant,
           t.grp, t.key, t.epoch, t.token, t.checkpoint, t.progress, t.progress_note, t.error,
           t.created_at, t.given_back, t.task, t.transients
    FROM sprat.work_pool t
    WHERE t.claimed_by = worker_ AND t.status = 'claimed' AND starts_with(t.token, token_)
    ORDER BY t.ahead > 0, t.seq
$$;
