-- Pushing: one call is one round trip, one transaction. See functions.sql.

-- Store these items, all or none. An array with one value stands for the same value in every item.
-- `ids` are those of earlier pushes for known keys, `others` and `tasks` what those items carry.
CREATE OR REPLACE FUNCTION sprat.push_v2(
    pool_ text, ids_ text[], data_ text[], max_retries_ int[], priority_ int[], delay_ float8[],
    tenant_ text[], grp_ text[], key_ text[], backlog_ bool[], task_ text[],
    OUT ids text[], OUT others text[], OUT tasks text[]
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
                                         grp, key, created_at, ready_at, run_at, task)
            SELECT id, pool_, data,
                   CASE WHEN coalesce(parked, backlog_[1]) THEN 'backlog' ELSE 'pending' END,
                   coalesce(retries, max_retries_[1]), coalesce(priority, priority_[1]),
                   coalesce(tenant, tenant_[1], ''), coalesce(grp, grp_[1], ''), key,
                   now_, coalesce(due, now_), due,
                   nullif(coalesce(task, task_[1]), '')
            FROM unnest(ids_, data_, max_retries_, priority_, delay_, tenant_, grp_, key_, backlog_,
                        task_)
                 WITH ORDINALITY AS given (id, data, retries, priority, delay, tenant, grp, key,
                                           parked, task, place),
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
               array_agg(w.data ORDER BY place), array_agg(w.task ORDER BY place)
        INTO ids, others, tasks
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

-- One item without a key, a delay, a tenant or a group: what most pushes are. Whoever may claim at
-- all can take it, so who waits is told that there is work: it need not look before it claims.
-- The rows that count and note it nearly always exist, and are written here: a call costs more.
CREATE OR REPLACE FUNCTION sprat.push_one_v2(
    pool_ text, id_ text, data_ text, max_retries_ int, priority_ int, task_ text
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
                                 created_at, ready_at, task)
    VALUES (id_, pool_, data_, 'pending', max_retries_, priority_, '', '', now_, now_, task_)
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
