-- Whether the store was away: the rules are in leases.py, marks.py applies them.

-- Note that the store works now, if the mark is older than touch_ (NULL: only look). Not steady:
-- the server was started anew, or the gap is longer than quiet_ of a live lease; leases may have to
-- be renewed first, so nothing is noted. A mark that another transaction is writing is left to it:
-- waiting would make claims take turns.
CREATE OR REPLACE FUNCTION sprat.note_mark(
    touch_ float8, quiet_ float8, OUT now float8, OUT steady bool
) LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
    mark sprat.mark%ROWTYPE;
BEGIN
    now := sprat.clock();
    SELECT * INTO mark FROM sprat.mark WHERE id = 1;
    steady := mark.server = extract(epoch FROM pg_postmaster_start_time())::float8;
    IF steady AND abs(now - mark.at) <= touch_ THEN
        RETURN;
    END IF;
    steady := steady AND NOT EXISTS (SELECT 1 FROM sprat.worker_registry
        WHERE status IN ('starting', 'active', 'terminating')
          AND now - mark.at > quiet_ * lease_seconds);
    IF steady AND touch_ IS NOT NULL THEN
        PERFORM 1 FROM sprat.mark
        WHERE id = 1 AND abs(now - at) > touch_ FOR UPDATE SKIP LOCKED;
        IF FOUND THEN
            UPDATE sprat.mark SET at = now WHERE id = 1;
        END IF;
    END IF;
END $$;
