-- Schema version 3: ready items by lane, and by priority within it.
--
-- A claim does not meet the priorities of lanes that are not for its worker. The functions that claim
-- are replaced with this, also for connected clients of version 2, and find the same items.

CREATE INDEX work_pool_lanes ON sprat.work_pool (pool_name, tenant, grp, priority DESC, seq)
    WHERE status = 'pending' AND run_at IS NULL;
DROP INDEX sprat.work_pool_ready;
