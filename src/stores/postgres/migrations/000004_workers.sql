-- Claims and leases. Whoever changes both locks the worker's row first and Run rows after it, as commits do.

-- Claims due Runs in order of claim key. Skips rows that are locked: whoever holds them is changing them.
CREATE FUNCTION errand.claim_runs(p_tenant text, p_incarnation text, p_carries text[], p_limit integer, p_now bigint)
RETURNS TABLE (run_id text, epoch integer, version integer, signal_seq integer, control_seq integer,
  fruitless_claims integer)
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
SET plan_cache_mode = force_generic_plan
SET lock_timeout = '4s'
AS $claim_runs$
#variable_conflict use_column
DECLARE
  v_now bigint := errand.now_ms(p_now);
BEGIN
  -- runs_claimable; with nothing due nothing is written
  PERFORM 1 FROM errand.runs q
  WHERE q.tenant = p_tenant AND q.claim_key <= v_now AND q.claim_key IS NOT NULL AND q.due_at <= v_now
    AND q.publication = ANY (p_carries)
  LIMIT 1;
  IF NOT FOUND OR p_limit <= 0 THEN RETURN; END IF;
  -- workers_pkey
  PERFORM 1 FROM errand.workers a
  WHERE a.tenant = p_tenant AND a.incarnation = p_incarnation AND NOT a.dead FOR KEY SHARE;
  IF NOT FOUND THEN RETURN; END IF;
  v_now := errand.now_ms(p_now);
  RETURN QUERY
  -- runs_claimable, runs_pkey
  WITH picked AS (
    SELECT q.run_no, q.claim_key FROM errand.runs q
    WHERE q.tenant = p_tenant AND q.claim_key <= v_now AND q.claim_key IS NOT NULL AND q.due_at <= v_now
      AND q.publication = ANY (p_carries)
    ORDER BY q.claim_key, q.run_no
    LIMIT p_limit
    FOR UPDATE SKIP LOCKED
  ), taken AS (
    UPDATE errand.runs q
    SET state = 'running', epoch = q.epoch + 1, fruitless_claims = q.fruitless_claims + 1, claimed_by = p_incarnation,
      due_at = NULL, claim_key = NULL
    FROM picked WHERE q.run_no = picked.run_no
    RETURNING q.run_no, q.tenant, picked.claim_key, q.epoch, q.version, q.signal_seq, q.control_seq, q.fruitless_claims
  ), named AS (
    SELECT taken.*, h.run_id FROM taken
    JOIN errand.run_headers h ON h.tenant = taken.tenant AND h.run_no = taken.run_no
    ORDER BY taken.claim_key, taken.run_no
  ), told AS (
    INSERT INTO errand.events (tenant, xid, seq, at, kind, incarnation, run_id, epoch)
    SELECT p_tenant, pg_current_xact_id(), nextval('errand.numbers'), v_now, 'claimed', p_incarnation, named.run_id,
      named.epoch
    FROM named
  )
  SELECT named.run_id, named.epoch, named.version, named.signal_seq, named.control_seq, named.fruitless_claims
  FROM named ORDER BY named.claim_key, named.run_no;
END
$claim_runs$;

-- Gives claims back: ready again, under a higher epoch. Answers the Runs that were given back.
CREATE FUNCTION errand.release_runs(p_tenant text, p_incarnation text, p_runs text[], p_epochs integer[], p_now bigint)
RETURNS SETOF text
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
SET plan_cache_mode = force_generic_plan
SET lock_timeout = '4s'
AS $release_runs$
DECLARE
  v_now bigint;
  v_nos bigint[];
BEGIN
  -- run_headers_id, runs_pkey
  SELECT array_agg(s.run_no) INTO v_nos
  FROM (
    SELECT q.run_no
    FROM unnest(p_runs, p_epochs) AS u(run_id, epoch)
    CROSS JOIN LATERAL (
      SELECT a.run_no FROM errand.run_headers a WHERE a.tenant = p_tenant AND a.run_id = u.run_id LIMIT 1
    ) h
    JOIN errand.runs q ON q.run_no = h.run_no
    WHERE q.claimed_by = p_incarnation AND q.epoch = u.epoch
    ORDER BY q.root_no, q.depth DESC, q.run_no
    FOR UPDATE OF q
  ) s;
  IF v_nos IS NULL THEN RETURN; END IF;
  v_now := errand.now_ms(p_now);
  RETURN QUERY
  WITH freed AS (
    UPDATE errand.runs q
    SET state = 'ready', claimed_by = NULL, due_at = v_now, claim_key = v_now - q.priority * 60000::bigint,
      epoch = q.epoch + 1, fruitless_claims = greatest(q.fruitless_claims - 1, 0)
    WHERE q.run_no = ANY (v_nos)
    RETURNING q.run_no, q.epoch - 1 AS epoch
  ), told AS (
    INSERT INTO errand.events (tenant, xid, seq, at, kind, incarnation, run_id, epoch)
    SELECT p_tenant, pg_current_xact_id(), nextval('errand.numbers'), v_now, 'released', p_incarnation, h.run_id,
      freed.epoch
    FROM freed JOIN errand.run_headers h ON h.tenant = p_tenant AND h.run_no = freed.run_no
    RETURNING run_id
  )
  SELECT told.run_id FROM told;
END
$release_runs$;

-- Ends incarnations once and for good and frees what they hold. With p_silent_ms, all that have been silent for longer;
-- without, the one named. Answers one row an ended incarnation and one a freed Run.
CREATE FUNCTION errand.end_workers(p_tenant text, p_incarnation text, p_silent_ms bigint, p_now bigint)
RETURNS TABLE (incarnation text, run_id text)
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
SET plan_cache_mode = force_generic_plan
SET lock_timeout = '4s'
AS $end_workers$
#variable_conflict use_column
DECLARE
  v_now bigint := errand.now_ms(p_now);
  v_worker text;
BEGIN
  FOR v_worker IN
    -- workers_live or workers_pkey; a beat that comes while this waits for the row keeps the incarnation alive
    SELECT a.incarnation FROM errand.workers a
    WHERE a.tenant = p_tenant AND NOT a.dead
      AND (p_silent_ms IS NULL OR a.heartbeat_at < v_now - p_silent_ms)
      AND (p_incarnation IS NULL OR a.incarnation = p_incarnation)
    ORDER BY a.incarnation
    FOR UPDATE
  LOOP
    UPDATE errand.workers a SET dead = true WHERE a.tenant = p_tenant AND a.incarnation = v_worker;
    IF p_silent_ms IS NOT NULL THEN
      INSERT INTO errand.events (tenant, xid, seq, at, kind, incarnation)
      VALUES (p_tenant, pg_current_xact_id(), nextval('errand.numbers'), v_now, 'worker_dead', v_worker);
    END IF;
    -- runs_held, in the order of all locks
    PERFORM 1 FROM errand.runs q WHERE q.tenant = p_tenant AND q.claimed_by = v_worker
    ORDER BY q.root_no, q.depth DESC, q.run_no FOR UPDATE;
    v_now := errand.now_ms(p_now);
    RETURN QUERY
    WITH freed AS (
      UPDATE errand.runs q
      SET state = 'ready', claimed_by = NULL, due_at = v_now, claim_key = v_now - q.priority * 60000::bigint,
        epoch = q.epoch + 1
      WHERE q.tenant = p_tenant AND q.claimed_by = v_worker
      RETURNING q.run_no, q.epoch - 1 AS epoch
    ), told AS (
      INSERT INTO errand.events (tenant, xid, seq, at, kind, incarnation, run_id, epoch)
      SELECT p_tenant, pg_current_xact_id(), nextval('errand.numbers'), v_now,
        CASE WHEN p_silent_ms IS NULL THEN 'released' ELSE 'lease_lost' END, v_worker, h.run_id, freed.epoch
      FROM freed JOIN errand.run_headers h ON h.tenant = p_tenant AND h.run_no = freed.run_no
      RETURNING run_id
    )
    SELECT v_worker, told.run_id FROM told;
    IF p_silent_ms IS NULL THEN
      INSERT INTO errand.events (tenant, xid, seq, at, kind, incarnation)
      VALUES (p_tenant, pg_current_xact_id(), nextval('errand.numbers'), v_now, 'worker_stopped', v_worker);
    END IF;
    incarnation := v_worker;
    run_id := NULL;
    RETURN NEXT;
  END LOOP;
END
$end_workers$;
