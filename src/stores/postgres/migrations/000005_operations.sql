-- What an operator does: limits, retention, erasure.

-- How many Runs may run at the same time; null is no limit.
CREATE TABLE errand.limits (
  tenant text COLLATE "C" PRIMARY KEY,
  tenant_runs integer,
  tree_runs integer,
  agents jsonb NOT NULL
);

-- What is left of pruned trees.
CREATE TABLE errand.tombstones (
  tenant text COLLATE "C" NOT NULL,
  root_run_id text COLLATE "C" NOT NULL,
  tombstone_no bigint NOT NULL,
  runs integer NOT NULL,
  ended_at bigint NOT NULL,
  pruned_at bigint NOT NULL,
  PRIMARY KEY (tenant, root_run_id)
);
CREATE INDEX tombstones_tenant ON errand.tombstones (tenant, tombstone_no);

-- Trees that may be pruned, the longest ended first.
CREATE INDEX runs_ended ON errand.runs (tenant, ended_at) WHERE ended_at IS NOT NULL AND run_no = root_no;

-- Whether everything on a thread is over and done with since before a time. A root's thread has only roots.
CREATE FUNCTION errand.is_settled(p_tenant text, p_thread_no bigint, p_before bigint) RETURNS boolean
LANGUAGE sql STABLE AS $is_settled$
  WITH trees AS (
    SELECT h.run_no AS root_no, h.root_run_id FROM errand.run_headers h
    WHERE h.tenant = p_tenant AND h.run_no = p_thread_no
    UNION ALL
    SELECT h.run_no, h.root_run_id FROM errand.run_headers h
    WHERE h.thread_no = p_thread_no AND h.thread_no <> h.run_no
  )
  SELECT NOT EXISTS (
    SELECT 1 FROM trees t
    WHERE EXISTS (
      SELECT 1 FROM errand.run_headers h JOIN errand.runs r ON r.run_no = h.run_no
      WHERE h.root_no = t.root_no AND (r.ended_at IS NULL OR r.ended_at >= p_before OR EXISTS (
        SELECT 1 FROM errand.inbox i WHERE i.parent_no = r.run_no AND i.status = 'unread'
      ))
    )
    OR EXISTS (
      SELECT 1 FROM errand.delegations d
      WHERE d.root_no = t.root_no AND d.status = 'cancel_requested' AND NOT d.intent_delivered
    )
    OR EXISTS (
      SELECT 1 FROM errand.tickets k
      WHERE k.tenant = p_tenant AND k.root_run_id = t.root_run_id AND k.status = 'open'
    )
  )
$is_settled$;

-- Removes the trees of one thread, or only counts them; counts nothing if they are not settled.
CREATE FUNCTION errand.prune_thread(p_tenant text, p_thread_no bigint, p_before bigint, p_dry boolean, p_now bigint)
RETURNS TABLE (trees integer, runs integer)
LANGUAGE plpgsql
SET lock_timeout = '4s'
AS $prune_thread$
#variable_conflict use_column
DECLARE
  v_roots bigint[];
  v_nos bigint[];
BEGIN
  SELECT array_agg(h.run_no) INTO v_roots FROM errand.run_headers h
  WHERE h.tenant = p_tenant AND (h.run_no = p_thread_no OR (h.thread_no = p_thread_no AND h.thread_no <> h.run_no));
  SELECT array_agg(s.run_no) INTO v_nos FROM (
    SELECT r.run_no FROM errand.run_headers h JOIN errand.runs r ON r.run_no = h.run_no
    WHERE h.root_no = ANY (v_roots)
    ORDER BY r.root_no, r.depth DESC, r.run_no FOR UPDATE
  ) s;
  IF v_nos IS NULL OR NOT errand.is_settled(p_tenant, p_thread_no, p_before) THEN RETURN; END IF;
  IF NOT p_dry THEN
    INSERT INTO errand.tombstones (tenant, root_run_id, tombstone_no, runs, ended_at, pruned_at)
    SELECT p_tenant, h.root_run_id, nextval('errand.numbers'), count(*), max(r.ended_at), errand.now_ms(p_now)
    FROM errand.run_headers h JOIN errand.runs r ON r.run_no = h.run_no
    WHERE h.root_no = ANY (v_roots) GROUP BY h.root_run_id
    ON CONFLICT (tenant, root_run_id) DO UPDATE SET tombstone_no = excluded.tombstone_no, runs = excluded.runs,
      ended_at = excluded.ended_at, pruned_at = excluded.pruned_at;
    DELETE FROM errand.log WHERE run_no = ANY (v_nos);
    DELETE FROM errand.inbox WHERE parent_no = ANY (v_nos);
    DELETE FROM errand.delegations WHERE root_no = ANY (v_roots);
    DELETE FROM errand.tickets k USING errand.run_headers h
    WHERE h.tenant = p_tenant AND h.run_no = ANY (v_roots) AND k.tenant = p_tenant AND k.root_run_id = h.root_run_id;
    DELETE FROM errand.runs WHERE run_no = ANY (v_nos);
    DELETE FROM errand.run_headers WHERE tenant = p_tenant AND run_no = ANY (v_nos);
  END IF;
  RETURN QUERY SELECT cardinality(v_roots), cardinality(v_nos);
END
$prune_thread$;

-- What stands where content was erased, as the runtime writes it.
CREATE FUNCTION errand.erasure_mark(p_text text) RETURNS text
LANGUAGE sql IMMUTABLE AS $erasure_mark$
  SELECT CASE WHEN p_text ~ '^\{"erased":"[0-9a-f]{64}"\}$' THEN p_text
    ELSE '{"erased":"' || encode(sha256(convert_to(p_text, 'UTF8')), 'hex') || '"}' END
$erasure_mark$;

-- Erases a person's trees whose threads are settled. A Run's first entry says on whose behalf it was started.
CREATE FUNCTION errand.erase_user(p_tenant text, p_user text) RETURNS TABLE (erased integer, still_live integer)
LANGUAGE plpgsql
SET lock_timeout = '4s'
AS $erase_user$
#variable_conflict use_column
DECLARE
  v_root record;
  v_nos bigint[];
  v_erased integer := 0;
  v_live integer := 0;
BEGIN
  FOR v_root IN
    SELECT h.run_no, h.thread_no, h.root_run_id
    FROM errand.run_headers h JOIN errand.log l ON l.seq = h.run_no
    WHERE h.tenant = p_tenant AND h.parent_run_id IS NULL AND l.body::json #>> '{0,header,user}' = p_user
  LOOP
    SELECT array_agg(s.run_no) INTO v_nos FROM (
      SELECT r.run_no FROM errand.run_headers h JOIN errand.runs r ON r.run_no = h.run_no
      WHERE h.root_no = v_root.run_no ORDER BY r.root_no, r.depth DESC, r.run_no FOR UPDATE
    ) s;
    IF NOT errand.is_settled(p_tenant, v_root.thread_no, 9007199254740991) THEN
      v_live := v_live + cardinality(v_nos);
      CONTINUE;
    END IF;
    UPDATE errand.log SET body = errand.erasure_mark(body), summary = errand.erasure_mark(summary)
    WHERE run_no = ANY (v_nos);
    UPDATE errand.inbox SET body = errand.erasure_mark(body) WHERE parent_no = ANY (v_nos);
    UPDATE errand.tickets SET body = errand.erasure_mark(body), close_reason = errand.erasure_mark(close_reason)
    WHERE tenant = p_tenant AND root_run_id = v_root.root_run_id;
    v_erased := v_erased + cardinality(v_nos);
  END LOOP;
  RETURN QUERY SELECT v_erased, v_live;
END
$erase_user$;

-- Removes everything of a tenant, unless a Run of it runs: then it answers how many do.
CREATE FUNCTION errand.erase_tenant(p_tenant text) RETURNS TABLE (running integer, runs integer)
LANGUAGE plpgsql
AS $erase_tenant$
DECLARE
  v_running integer;
  v_runs integer;
BEGIN
  PERFORM 1 FROM errand.runs r WHERE r.tenant = p_tenant AND r.ended_at IS NULL
  ORDER BY r.root_no, r.depth DESC, r.run_no FOR UPDATE;
  SELECT count(*) INTO v_running FROM errand.runs r WHERE r.tenant = p_tenant AND r.claimed_by IS NOT NULL;
  IF v_running > 0 THEN
    RETURN QUERY SELECT v_running, 0;
    RETURN;
  END IF;
  DELETE FROM errand.workers WHERE tenant = p_tenant;
  DELETE FROM errand.runs WHERE tenant = p_tenant;
  GET DIAGNOSTICS v_runs = ROW_COUNT;
  DELETE FROM errand.run_headers WHERE tenant = p_tenant;
  DELETE FROM errand.log WHERE tenant = p_tenant;
  DELETE FROM errand.events WHERE tenant = p_tenant;
  DELETE FROM errand.delegations WHERE tenant = p_tenant;
  DELETE FROM errand.inbox WHERE tenant = p_tenant;
  DELETE FROM errand.tickets WHERE tenant = p_tenant;
  DELETE FROM errand.publications WHERE tenant = p_tenant;
  DELETE FROM errand.limits WHERE tenant = p_tenant;
  DELETE FROM errand.tombstones WHERE tenant = p_tenant;
  RETURN QUERY SELECT 0, v_runs;
END
$erase_tenant$;
