-- Writes a group of commits of one tenant in one transaction: each is accepted or refused on its own, in their order, and
-- sees what those before it did. Nothing is refused by an exception; where two transactions make the same new row, the
-- unique index fails one of them whole, and its caller calls again.
--
-- 1. Lock: workers that want to claim, then Run rows in one order (root, depth descending, number), then tickets.
-- 2. Look: every statement after the locks sees what was committed before them.
-- 3. Decide: row by row in memory (`w`), so that a row is written once however many commits touch it.
-- 4. Write: one statement a table.
--
-- p_batch holds ids and numbers; p_texts the texts (bodies, summaries), named there by their place. A commit refers to
-- Runs, threads and envelopes by their place in p_batch.runs, .threads and .envelopes.
-- Answers JSON: {"at", "out": one outcome a commit, "ready": [run ids], "signal": [run ids]}.
CREATE FUNCTION errand.commit_group(p_tenant text, p_batch jsonb, p_texts text[], p_now bigint)
RETURNS text
LANGUAGE plpgsql
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
SET plan_cache_mode = force_generic_plan
SET lock_timeout = '4s'
AS $commit_group$
#variable_conflict use_column
DECLARE
  v_now bigint;
  v_xid xid8;
  c record;
  x record;
  i integer;
  k integer;
  t integer;
  -- The rows at work, by place; those found on the way stand behind the named ones.
  v_ids text[] := ARRAY(SELECT jsonb_array_elements_text(p_batch->'runs'));
  v_size integer := cardinality(v_ids);
  w errand.runs[] := array_fill(NULL::errand.runs, ARRAY[v_size]);
  -- 0 absent, 1 as in the table, 2 changed, 3 new
  w_mark integer[] := array_fill(0, ARRAY[v_size]);
  w_parent bigint[] := array_fill(0::bigint, ARRAY[v_size]);
  -- Number of the commit that made it ready, and of the one that delivered to it while it was live.
  w_ready integer[] := array_fill(0, ARRAY[v_size]);
  w_delivered integer[] := array_fill(0, ARRAY[v_size]);
  w_signal boolean[] := array_fill(false, ARRAY[v_size]);
  r errand.runs;
  l errand.runs;
  -- Places of rows that may be due now, and of rows that are queued for a lane.
  v_due integer[] := '{}';
  v_queued integer[] := '{}';
  v_nos bigint[] := '{}';
  v_update errand.runs[] := '{}';
  v_insert errand.runs[] := '{}';
  -- For each set of carried publications: up to two due Runs that are not at work here.
  q_due bigint[];
  q_first bigint[] := '{}';
  q_second bigint[] := '{}';
  -- Commits
  v_number integer := 0;
  v_accepted boolean[] := '{}';
  v_out text := '';
  v_verdict text;
  v_lane_nos bigint[] := '{}';
  v_ops text[] := '{}';
  k_digest text[];
  k_receipt text[];
  v_alive text[] := '{}';
  v_carries text[];
  v_may boolean;
  v_parked boolean;
  v_claimed text;
  v_conflicts text;
  v_receipt text;
  v_is_child boolean;
  v_live boolean;
  -- Creations
  n_run integer[]; n_thread integer[]; n_parent text[]; n_claim boolean[]; n_delay bigint[];
  n_root text[]; n_priority integer[]; n_depth integer[]; n_publication text[]; n_summary integer[]; n_body integer[];
  n_delegation text[]; n_agent text[];
  v_no bigint; v_root_no bigint; v_parent_no bigint;
  h integer := 0;
  h_rows errand.run_headers[] := '{}';
  -- Threads that Runs are created on: number (null for a new one), holder's place (0 without), version, whether a child's
  v_threads text[];
  t_no bigint[]; t_holder integer[]; t_version integer[]; t_child boolean[];
  -- Signals and deliveries
  s_run integer[]; s_body integer[]; s_lifecycle boolean[]; s_control boolean[]; s_record boolean[];
  d_envelope integer[]; d_run integer[]; d_kind text[]; d_digest text[]; d_body integer[];
  e_id text[]; e_kind text[]; e_digest text[]; e_child text[];
  e_rows errand.inbox[] := '{}';
  v_close text[] := '{}';
  -- Log rows; a commit's first one is written last, for it carries the receipt.
  g integer := 0;
  g_rows errand.log[] := '{}';
  g_row errand.log;
  g_head errand.log;
  -- The number of the commit's next row, and how many it has.
  g_no bigint;
  g_count integer;
BEGIN
  -- 1. Lock. A worker's row is held against its death: what it claims here is freed by whoever ends it later.
  IF p_batch ? 'incarnations' THEN
    SELECT coalesce(array_agg(s.incarnation), '{}') INTO v_alive
    FROM (
      SELECT a.incarnation FROM errand.workers a
      WHERE a.tenant = p_tenant
        AND a.incarnation = ANY (ARRAY(SELECT jsonb_array_elements_text(p_batch->'incarnations'))) AND NOT a.dead
      ORDER BY a.incarnation
      FOR KEY SHARE
    ) s;
  END IF;

  IF p_batch ? 'creates' THEN
    SELECT array_agg(n.i), array_agg(n.t), array_agg(n.parent), array_agg(n.claim), array_agg(n.delay),
      array_agg(n.root), array_agg(n.priority), array_agg(n.depth), array_agg(n.publication), array_agg(n.summary),
      array_agg(n.body), array_agg(n.delegation), array_agg(n.agent)
    INTO n_run, n_thread, n_parent, n_claim, n_delay, n_root, n_priority, n_depth, n_publication, n_summary, n_body,
      n_delegation, n_agent
    FROM jsonb_to_recordset(p_batch->'creates') AS n(i integer, t integer, parent text, claim boolean, delay bigint,
      root text, priority integer, depth integer, publication text, summary integer, body integer, delegation text,
      agent text);
    v_threads := ARRAY(SELECT jsonb_array_elements_text(p_batch->'threads'));
    t_no := array_fill(NULL::bigint, ARRAY[cardinality(v_threads)]);
    t_holder := array_fill(0, ARRAY[cardinality(v_threads)]);
    t_version := t_holder;
    t_child := array_fill(false, ARRAY[cardinality(v_threads)]);
    -- run_headers_thread; most threads are new
    FOR x IN
      SELECT u.t::integer AS t, f.run_no, h.run_id AS holder
      FROM unnest(v_threads) WITH ORDINALITY AS u(thread_id, t)
      CROSS JOIN LATERAL (
        SELECT a.run_no FROM errand.run_headers a
        WHERE a.tenant = p_tenant AND a.thread_id = u.thread_id AND a.thread_no = a.run_no LIMIT 1
      ) f
      LEFT JOIN errand.runs q ON q.thread_no = f.run_no AND q.lane
      LEFT JOIN errand.run_headers h ON h.tenant = p_tenant AND h.run_no = q.run_no
    LOOP
      t_no[x.t] := x.run_no;
      IF x.holder IS NOT NULL AND array_position(v_ids, x.holder) IS NULL THEN
        v_size := v_size + 1;
        v_ids[v_size] := x.holder;
        w[v_size] := NULL;
        w_mark[v_size] := 0; w_parent[v_size] := 0; w_ready[v_size] := 0; w_delivered[v_size] := 0;
        w_signal[v_size] := false;
      END IF;
    END LOOP;
  END IF;

  -- run_headers_id, runs_pkey
  FOR x IN
    SELECT h.run_id, h.parent_no, q AS run
    FROM unnest(v_ids) AS u(run_id)
    CROSS JOIN LATERAL (
      SELECT a.run_id, a.run_no, a.parent_no FROM errand.run_headers a
      WHERE a.tenant = p_tenant AND a.run_id = u.run_id LIMIT 1
    ) h
    JOIN errand.runs q ON q.run_no = h.run_no
    ORDER BY q.root_no, q.depth DESC, q.run_no
    FOR UPDATE OF q
  LOOP
    i := array_position(v_ids, x.run_id);
    w[i] := x.run;
    w_mark[i] := 1;
    w_parent[i] := x.parent_no;
    v_nos := v_nos || (x.run).run_no;
  END LOOP;

  v_now := errand.now_ms(p_now);

  -- The holders of the threads, once nobody else can end them; one that got the lane meanwhile is locked too.
  IF t_no IS NOT NULL AND array_remove(t_no, NULL) <> '{}' THEN
    LOOP
      -- runs_lane
      SELECT q.* INTO r FROM errand.runs q
      WHERE q.thread_no = ANY (t_no) AND q.lane AND q.run_no <> ALL (v_nos) LIMIT 1 FOR UPDATE;
      EXIT WHEN NOT FOUND;
      v_size := v_size + 1;
      SELECT h.run_id, h.parent_no INTO x FROM errand.run_headers h
      WHERE h.tenant = p_tenant AND h.run_no = r.run_no;
      v_ids[v_size] := x.run_id;
      v_nos := v_nos || r.run_no;
      w[v_size] := r;
      w_mark[v_size] := 1; w_parent[v_size] := x.parent_no; w_ready[v_size] := 0; w_delivered[v_size] := 0;
      w_signal[v_size] := false;
    END LOOP;
    FOR t IN 1 .. cardinality(t_no) LOOP
      CONTINUE WHEN t_no[t] IS NULL;
      FOR i IN 1 .. v_size LOOP
        IF w_mark[i] = 1 AND (w[i]).thread_no = t_no[t] AND (w[i]).lane THEN t_holder[t] := i; END IF;
      END LOOP;
      -- run_headers_later, runs_pkey
      SELECT max(o.version) AS version, bool_or(o.parent_no <> 0) AS child INTO x
      FROM (
        SELECT q.version, h.parent_no FROM errand.run_headers h JOIN errand.runs q ON q.run_no = h.run_no
        WHERE h.tenant = p_tenant AND h.run_no = t_no[t]
        UNION ALL
        SELECT q.version, h.parent_no FROM errand.run_headers h JOIN errand.runs q ON q.run_no = h.run_no
        WHERE h.thread_no = t_no[t] AND h.thread_no <> h.run_no
      ) o;
      t_version[t] := x.version;
      t_child[t] := x.child;
    END LOOP;
  END IF;

  -- Who is next on the threads of Runs that may end here.
  IF p_batch ? 'ends' THEN
    FOR x IN
      SELECT o.run, o.run_id, o.parent_no
      FROM jsonb_array_elements_text(p_batch->'ends') AS e(place)
      CROSS JOIN LATERAL (
        -- run_headers_later, runs_pkey
        SELECT q AS run, h.run_id, h.parent_no
        FROM errand.run_headers h JOIN errand.runs q ON q.run_no = h.run_no
        WHERE h.thread_no = (w[e.place::integer]).thread_no AND h.thread_no <> h.run_no
          AND h.run_no > (w[e.place::integer]).run_no AND q.ended_at IS NULL
        ORDER BY h.run_no LIMIT 1
        FOR UPDATE OF q
      ) o
    LOOP
      i := array_position(v_ids, x.run_id);
      IF i IS NULL THEN
        v_size := v_size + 1;
        i := v_size;
        v_ids[i] := x.run_id;
        v_nos := v_nos || (x.run).run_no;
        w_ready[i] := 0; w_delivered[i] := 0; w_signal[i] := false;
      END IF;
      w[i] := x.run;
      w_mark[i] := 1;
      w_parent[i] := x.parent_no;
    END LOOP;
  END IF;

  FOR i IN 1 .. v_size LOOP
    CONTINUE WHEN w_mark[i] = 0;
    r := w[i];
    IF r.claim_key IS NOT NULL THEN
      IF r.due_at <= v_now THEN v_due := v_due || i; END IF;
    ELSIF NOT r.lane AND r.ended_at IS NULL THEN
      v_queued := v_queued || i;
    END IF;
  END LOOP;

  -- 2. Look.
  IF p_batch ? 'signals' THEN
    SELECT array_agg(s.i), array_agg(s.body), array_agg(s.lifecycle), array_agg(s.control), array_agg(s.record)
    INTO s_run, s_body, s_lifecycle, s_control, s_record
    FROM jsonb_to_recordset(p_batch->'signals')
      AS s(i integer, body integer, lifecycle boolean, control boolean, record boolean);
  END IF;
  IF p_batch ? 'deliveries' THEN
    SELECT array_agg(d.e), array_agg(d.i), array_agg(d.kind), array_agg(d.digest), array_agg(d.body)
    INTO d_envelope, d_run, d_kind, d_digest, d_body
    FROM jsonb_to_recordset(p_batch->'deliveries')
      AS d(e integer, i integer, kind text, digest text, body integer);
    SELECT array_agg(e.d ORDER BY e.n), array_agg(e.child ORDER BY e.n), array_agg(b.kind ORDER BY e.n),
      array_agg(b.digest ORDER BY e.n)
    INTO e_id, e_child, e_kind, e_digest
    FROM (
      SELECT row_number() OVER () AS n, y.i, y.d, y.child
      FROM jsonb_to_recordset(p_batch->'envelopes') AS y(i integer, d text, child text)
    ) e
    -- inbox_pkey
    LEFT JOIN LATERAL (
      SELECT a.kind, a.digest FROM errand.inbox a
      WHERE a.parent_no = coalesce((w[e.i]).run_no, 0) AND a.delegation_id = e.d AND a.tenant = p_tenant LIMIT 1
    ) b ON true;
  END IF;

  -- log_lane_operation, log_operation
  SELECT array_agg(o.digest ORDER BY u.n), array_agg(o.receipt ORDER BY u.n) INTO k_digest, k_receipt
  FROM (
    SELECT row_number() OVER () AS n, y.op, (w[y.lane]).run_no AS run_no
    FROM jsonb_to_recordset(p_batch->'commits') AS y(op text, lane integer)
  ) u
  LEFT JOIN LATERAL (
    SELECT a.digest, a.receipt FROM errand.log a WHERE a.run_no = u.run_no AND a.operation_id = u.op AND a.lane
    UNION ALL
    SELECT a.digest, a.receipt FROM errand.log a
    WHERE a.tenant = p_tenant AND a.operation_id = u.op AND NOT a.lane AND a.operation_id IS NOT NULL
    LIMIT 1
  ) o ON true;

  -- 3. Decide.
  FOR c IN
    SELECT * FROM jsonb_to_recordset(p_batch->'commits') AS y(
      op text, digest text,
      lane integer, incarnation text, epoch integer, version integer, control integer,
      next text, state text, due bigint, seen integer, body integer, summary integer, lifecycle boolean,
      create_from integer, create_to integer, signal_from integer, signal_to integer,
      deliver_from integer, deliver_to integer, decide text, claimer text, carries integer, claim_parent boolean)
  LOOP
    v_number := v_number + 1;
    v_verdict := NULL;
    l := NULL;

    -- A repeat first (L5), then the lane (L4), then what is asked of other rows.
    IF k_digest[v_number] IS NOT NULL THEN
      IF k_digest[v_number] = c.digest THEN
        v_verdict := '{"kind":"duplicate","receipt":' || k_receipt[v_number] || '}';
      ELSE
        v_verdict := '{"kind":"conflict","firstDigest":' || to_json(k_digest[v_number])::text || '}';
      END IF;
    ELSIF c.lane IS NOT NULL THEN
      l := w[c.lane];
      IF w_mark[c.lane] = 0 THEN v_verdict := 'absent';
      ELSIF l.ended_at IS NOT NULL THEN v_verdict := 'ended';
      ELSIF l.epoch <> c.epoch OR l.claimed_by IS DISTINCT FROM c.incarnation THEN v_verdict := 'epoch';
      ELSIF l.version <> c.version THEN v_verdict := 'version';
      ELSIF l.control_seq <> c.control THEN v_verdict := 'control';
      ELSIF c.next = 'end' AND l.signal_seq <> c.seen THEN v_verdict := 'signal';
      END IF;
      IF v_verdict IS NOT NULL THEN v_verdict := '{"kind":"stale","reason":"' || v_verdict || '"}'; END IF;
    END IF;
    IF v_verdict IS NULL AND c.create_to IS NOT NULL THEN
      FOR k IN c.create_from .. c.create_to LOOP
        IF w_mark[n_run[k]] <> 0 OR n_run[k] = ANY (n_run[c.create_from : k - 1]) THEN
          v_verdict := 'run_exists';
          EXIT;
        END IF;
        IF n_parent[k] IS NULL THEN
          v_is_child := t_child[n_thread[k]];
          FOR t IN c.create_from .. k - 1 LOOP
            IF n_thread[t] = n_thread[k] AND n_parent[t] IS NOT NULL THEN v_is_child := true; END IF;
          END LOOP;
          IF v_is_child THEN
            v_verdict := 'thread_not_root';
            EXIT;
          END IF;
        END IF;
      END LOOP;
      IF v_verdict IS NOT NULL THEN v_verdict := '{"kind":"refused","reason":"' || v_verdict || '"}'; END IF;
    END IF;
    IF v_verdict IS NULL AND c.signal_to IS NOT NULL THEN
      FOR k IN c.signal_from .. c.signal_to LOOP
        i := s_run[k];
        IF w_mark[i] = 0 THEN
          IF c.create_to IS NULL OR i <> ALL (n_run[c.create_from : c.create_to]) THEN
            v_verdict := '{"kind":"refused","reason":"run_absent"}';
            EXIT;
          END IF;
        ELSIF (w[i]).ended_at IS NOT NULL AND NOT s_record[k] THEN
          v_verdict := '{"kind":"refused","reason":"run_ended"}';
          EXIT;
        END IF;
      END LOOP;
    END IF;
    IF v_verdict IS NULL AND c.decide IS NOT NULL THEN
      -- tickets_pkey
      SELECT a.status, a.deadline_at INTO x FROM errand.tickets a
      WHERE a.tenant = p_tenant AND a.ticket_id = c.decide FOR UPDATE;
      IF NOT FOUND THEN v_verdict := 'absent';
      ELSIF x.status <> 'open' THEN v_verdict := x.status;
      ELSIF v_now >= x.deadline_at THEN v_verdict := 'expired';
      END IF;
      IF v_verdict IS NOT NULL THEN v_verdict := '{"kind":"refused","reason":"ticket_' || v_verdict || '"}'; END IF;
    END IF;

    IF v_verdict IS NOT NULL THEN
      v_accepted[v_number] := false;
      v_out := v_out || ',' || v_verdict;
      CONTINUE;
    END IF;
    v_accepted[v_number] := true;
    v_xid := coalesce(v_xid, pg_current_xact_id());
    g_head := NULL;
    v_parked := false;
    v_claimed := '';
    v_conflicts := '';

    -- The log rows of a commit follow one another: where another call's number falls in between, it begins behind that.
    g_count := (c.lane IS NOT NULL)::integer + coalesce(c.create_to - c.create_from + 1, 0)
      + coalesce(c.signal_to - c.signal_from + 1, 0);
    g_no := nextval('errand.numbers');
    k := 1;
    WHILE k < g_count LOOP
      v_no := nextval('errand.numbers');
      IF v_no = g_no + k THEN
        k := k + 1;
      ELSE
        g_no := v_no;
        k := 1;
      END IF;
    END LOOP;

    -- A claim is granted only if no older work is due that the worker carries; the wished-for parent is not counted.
    v_may := c.claimer IS NOT NULL AND c.claimer = ANY (v_alive);
    IF v_may THEN
      v_carries := ARRAY(SELECT jsonb_array_elements_text(p_batch->'carries'->(c.carries - 1)));
      FOREACH i IN ARRAY v_due LOOP
        r := w[i];
        IF r.due_at <= v_now AND r.lane AND r.state <> 'running' AND r.publication = ANY (v_carries)
          AND NOT (c.claim_parent AND c.lane IS NOT NULL AND r.run_no = w_parent[c.lane]) THEN
          v_may := false;
        END IF;
      END LOOP;
      IF v_may AND q_first[c.carries] IS NULL THEN
        -- runs_claimable
        q_due := ARRAY(
          SELECT q.run_no FROM errand.runs q
          WHERE q.tenant = p_tenant AND q.claim_key <= v_now AND q.claim_key IS NOT NULL AND q.due_at <= v_now
            AND q.publication = ANY (v_carries) AND q.run_no <> ALL (v_nos)
          ORDER BY q.claim_key LIMIT 2
        );
        q_first[c.carries] := coalesce(q_due[1], 0);
        q_second[c.carries] := coalesce(q_due[2], 0);
      END IF;
      IF v_may AND q_first[c.carries] <> 0 THEN
        v_may := q_second[c.carries] = 0 AND c.claim_parent AND c.lane IS NOT NULL
          AND q_first[c.carries] = w_parent[c.lane];
      END IF;
    END IF;

    IF c.lane IS NOT NULL THEN
      l.version := l.version + 1;
      l.fruitless_claims := 0;
      v_no := g_no;
      g_no := g_no + 1;
      g_head := ROW(v_no, v_xid, l.run_no, l.root_no, v_now, l.version, 0, true, c.lifecycle, p_tenant, NULL, NULL, NULL,
        NULL, p_texts[c.summary], p_texts[c.body])::errand.log;
      IF c.summary IS NOT NULL THEN l.summary_seq := v_no; END IF;
      IF c.next = 'park' AND l.signal_seq = c.seen THEN
        v_parked := true;
        l.state := c.state;
        l.claimed_by := NULL;
        l.due_at := v_now + c.due;
        IF l.due_at <= v_now THEN v_due := v_due || c.lane; END IF;
      ELSIF c.next = 'end' THEN
        l.state := 'ended';
        l.lane := false;
        l.claimed_by := NULL;
        l.due_at := NULL;
        l.ended_at := v_now;
      END IF;
      w[c.lane] := l;
      w_mark[c.lane] := 2;
      IF c.next = 'end' THEN
        -- The lane passes to the oldest Run that is queued on the thread.
        i := 0;
        FOREACH k IN ARRAY v_queued LOOP
          IF (w[k]).thread_no = l.thread_no AND (i = 0 OR (w[k]).run_no < (w[i]).run_no) THEN i := k; END IF;
        END LOOP;
        IF i <> 0 THEN
          r := w[i];
          r.lane := true;
          r.version := l.version;
          r.state := CASE WHEN r.due_at > v_now THEN 'created' ELSE 'ready' END;
          w[i] := r;
          w_mark[i] := greatest(w_mark[i], 2);
          v_queued := array_remove(v_queued, i);
          IF r.state = 'ready' THEN
            w_ready[i] := v_number;
            v_due := v_due || i;
          END IF;
        END IF;
        FOR t IN 1 .. coalesce(cardinality(t_no), 0) LOOP
          IF t_no[t] = l.thread_no THEN
            t_holder[t] := i;
            t_version[t] := l.version;
          END IF;
        END LOOP;
      END IF;
    END IF;

    IF c.create_to IS NOT NULL THEN
      FOR k IN c.create_from .. c.create_to LOOP
        i := n_run[k];
        t := n_thread[k];
        v_no := g_no;
        g_no := g_no + 1;
        IF n_parent[k] IS NULL THEN
          v_root_no := v_no;
          v_parent_no := 0;
        ELSIF c.lane IS NOT NULL AND n_parent[k] = v_ids[c.lane] THEN
          v_root_no := l.root_no;
          v_parent_no := l.run_no;
        ELSE
          -- run_headers_id; one that this group has just created has no header yet
          SELECT max(a.run_no) FILTER (WHERE a.run_id = n_root[k]) AS root,
            max(a.run_no) FILTER (WHERE a.run_id = n_parent[k]) AS parent
          INTO x
          FROM errand.run_headers a WHERE a.tenant = p_tenant AND a.run_id IN (n_root[k], n_parent[k]);
          v_root_no := coalesce(x.root, (w[array_position(v_ids, n_root[k])]).run_no, v_no);
          v_parent_no := coalesce(x.parent, (w[array_position(v_ids, n_parent[k])]).run_no, 0);
        END IF;
        IF t_no[t] IS NULL THEN
          t_no[t] := v_no;
          t_version[t] := 0;
        END IF;
        IF t_holder[t] = 0 THEN
          r := ROW(v_no, v_root_no, t_no[t], v_now + n_delay[k], NULL, NULL, v_no, n_depth[k], n_priority[k],
            t_version[t], 0, 0, 0, 0, true, CASE WHEN n_delay[k] = 0 THEN 'ready' ELSE 'created' END, p_tenant,
            n_publication[k], NULL)::errand.runs;
          t_holder[t] := i;
        ELSE
          t_version[t] := (w[t_holder[t]]).version;
          r := ROW(v_no, v_root_no, t_no[t], v_now + n_delay[k], NULL, NULL, v_no, n_depth[k], n_priority[k], 0, 0, 0,
            0, 0, false, 'created', p_tenant, n_publication[k], NULL)::errand.runs;
          v_queued := v_queued || i;
        END IF;
        w[i] := r;
        w_mark[i] := 3;
        w_parent[i] := v_parent_no;
        IF n_parent[k] IS NOT NULL THEN t_child[t] := true; END IF;
        h := h + 1;
        h_rows[h] := ROW(p_tenant, v_no, v_root_no, v_parent_no, r.thread_no, v_now, n_depth[k], v_ids[i], n_root[k],
          n_parent[k], v_threads[t], n_delegation[k], n_agent[k])::errand.run_headers;
        IF r.state = 'ready' THEN
          w_ready[i] := v_number;
          IF NOT (n_claim[k] AND v_may) THEN v_due := v_due || i; END IF;
        END IF;
        -- A queued Run has no version yet; its creation met the thread's.
        g_row := ROW(v_no, v_xid, v_no, v_root_no, v_now, t_version[t], 0, false, true, p_tenant, NULL, NULL, NULL, NULL,
          p_texts[n_summary[k]], p_texts[n_body[k]])::errand.log;
        IF g_head.seq IS NULL THEN
          g_head := g_row;
        ELSE
          g := g + 1;
          g_rows[g] := g_row;
        END IF;
      END LOOP;
    END IF;

    -- Signals, then deliveries: both raise the receiver's numbers, and wake it if it was parked.
    IF c.signal_to IS NOT NULL THEN
      FOR k IN c.signal_from .. c.signal_to LOOP
        i := s_run[k];
        r := w[i];
        r.signal_seq := r.signal_seq + 1;
        IF s_control[k] THEN r.control_seq := r.control_seq + 1; END IF;
        IF r.state = 'running' THEN
          w_signal[i] := true;
        ELSIF r.state IN ('waiting', 'awaiting', 'paused') OR (s_control[k] AND r.lane AND r.state = 'created') THEN
          r.state := 'ready';
          r.due_at := v_now;
          w_ready[i] := v_number;
          v_due := v_due || i;
        END IF;
        w[i] := r;
        w_mark[i] := greatest(w_mark[i], 2);
        g_row := ROW(g_no, v_xid, r.run_no, r.root_no, v_now, r.version, r.signal_seq, false,
          s_lifecycle[k], p_tenant, NULL, NULL, NULL, NULL, NULL, p_texts[s_body[k]])::errand.log;
        g_no := g_no + 1;
        IF g_head.seq IS NULL THEN
          g_head := g_row;
        ELSE
          g := g + 1;
          g_rows[g] := g_row;
        END IF;
      END LOOP;
    END IF;
    IF c.deliver_to IS NOT NULL THEN
      FOR k IN c.deliver_from .. c.deliver_to LOOP
        t := d_envelope[k];
        -- A result stands once it is there; news of a wait gives way to whatever comes after it (L16).
        IF e_kind[t] = 'result' THEN
          IF e_digest[t] <> d_digest[k] THEN v_conflicts := v_conflicts || ',' || to_json(e_id[t])::text; END IF;
          CONTINUE;
        END IF;
        i := d_run[k];
        v_live := w_mark[i] <> 0 AND (w[i]).ended_at IS NULL;
        e_kind[t] := d_kind[k];
        e_digest[t] := d_digest[k];
        e_rows[t] := ROW(coalesce((w[i]).run_no, 0), e_id[t], nextval('errand.numbers'), p_tenant,
          CASE WHEN v_live THEN 'unread' ELSE 'discarded' END, d_kind[k], v_ids[i], e_child[t], d_digest[k],
          p_texts[d_body[k]])::errand.inbox;
        CONTINUE WHEN w_mark[i] = 0;
        r := w[i];
        r.signal_seq := r.signal_seq + 1;
        IF r.state = 'running' THEN
          w_signal[i] := true;
        ELSIF r.state IN ('waiting', 'awaiting', 'paused') THEN
          r.state := 'ready';
          r.due_at := v_now;
          w_ready[i] := v_number;
          v_due := v_due || i;
        END IF;
        IF v_live THEN w_delivered[i] := v_number;
        ELSIF d_kind[k] = 'result' THEN v_close := v_close || e_id[t];
        END IF;
        w[i] := r;
        w_mark[i] := greatest(w_mark[i], 2);
      END LOOP;
    END IF;

    IF v_may THEN
      FOR k IN coalesce(c.create_from, 1) .. coalesce(c.create_to, 0) + 1 LOOP
        IF k <= c.create_to THEN
          i := n_run[k];
          CONTINUE WHEN NOT n_claim[k];
        ELSE
          EXIT WHEN NOT c.claim_parent OR c.lane IS NULL OR w_parent[c.lane] = 0 OR c.deliver_to IS NULL;
          i := 0;
          FOR t IN c.deliver_from .. c.deliver_to LOOP
            IF (w[d_run[t]]).run_no = w_parent[c.lane] AND w_delivered[d_run[t]] = v_number THEN i := d_run[t]; END IF;
          END LOOP;
          EXIT WHEN i = 0;
        END IF;
        r := w[i];
        CONTINUE WHEN r.state <> 'ready' OR w_ready[i] <> v_number OR r.publication <> ALL (v_carries);
        r.state := 'running';
        r.epoch := r.epoch + 1;
        r.fruitless_claims := r.fruitless_claims + 1;
        r.claimed_by := c.claimer;
        r.due_at := NULL;
        w[i] := r;
        w_ready[i] := 0;
        v_claimed := v_claimed || ',{"runId":' || to_json(v_ids[i])::text || ',"epoch":' || r.epoch || ',"version":'
          || r.version || ',"signalSeq":' || r.signal_seq || ',"controlSeq":' || r.control_seq
          || ',"fruitlessClaims":' || r.fruitless_claims || '}';
      END LOOP;
      -- A wish that was not granted leaves work that is due.
      FOR k IN coalesce(c.create_from, 1) .. coalesce(c.create_to, 0) LOOP
        IF n_claim[k] AND w_ready[n_run[k]] = v_number THEN v_due := v_due || n_run[k]; END IF;
      END LOOP;
    END IF;

    IF g_head.seq IS NULL THEN
      -- A commit without facts: its operation id is kept all the same.
      g_head := ROW(g_no, v_xid, 0, 0, v_now, 0, 0, false, false, p_tenant, NULL, NULL, NULL, NULL,
        NULL, '[]')::errand.log;
    END IF;
    IF c.lane IS NOT NULL THEN l := w[c.lane]; END IF;
    v_receipt := '{"at":' || v_now || ',"version":' || coalesce(l.version::text, 'null') || ',"signalSeq":'
      || coalesce(l.signal_seq, 0) || ',"controlSeq":' || coalesce(l.control_seq, 0) || ',"parked":' || v_parked::text
      || ',"claimed":[' || substr(v_claimed, 2) || '],"conflicts":[' || substr(v_conflicts, 2) || ']}';
    g_head.operation_id := c.op;
    g_head.digest := c.digest;
    g_head.receipt := v_receipt;
    IF v_claimed <> '' THEN g_head.claimed_by := c.claimer; END IF;
    g := g + 1;
    g_rows[g] := g_head;
    v_out := v_out || ',{"kind":"committed","receipt":' || v_receipt || '}';
  END LOOP;

  -- 4. Write.
  IF g > 0 THEN
    INSERT INTO errand.log SELECT * FROM unnest(g_rows);

    -- A lane is let go before it is taken.
    FOR i IN 1 .. v_size LOOP
      CONTINUE WHEN w_mark[i] < 2;
      r := w[i];
      r.claim_key := CASE WHEN r.lane AND r.state <> 'running' THEN r.due_at - r.priority * 60000::bigint END;
      IF w_mark[i] = 3 THEN v_insert := v_insert || r;
      ELSIF r.lane THEN v_update := v_update || r;
      ELSE v_update := r || v_update;
      END IF;
    END LOOP;
    -- runs_pkey
    UPDATE errand.runs q
    SET state = u.state, lane = u.lane, version = u.version, signal_seq = u.signal_seq, control_seq = u.control_seq,
      epoch = u.epoch, fruitless_claims = u.fruitless_claims, claimed_by = u.claimed_by, due_at = u.due_at,
      claim_key = u.claim_key, ended_at = u.ended_at, summary_seq = u.summary_seq
    FROM unnest(v_update) AS u
    WHERE q.run_no = u.run_no;
  END IF;

  IF h > 0 THEN
    INSERT INTO errand.run_headers SELECT * FROM unnest(h_rows);
    INSERT INTO errand.runs SELECT * FROM unnest(v_insert);
    IF p_batch ? 'late' THEN
      -- delegations_childless
      UPDATE errand.delegations SET childless = false
      WHERE tenant = p_tenant AND childless
        AND child_run_id = ANY (ARRAY(SELECT jsonb_array_elements_text(p_batch->'late')))
        AND EXISTS (SELECT 1 FROM errand.run_headers h WHERE h.tenant = p_tenant AND h.run_id = child_run_id);
    END IF;
  END IF;

  IF p_batch ? 'opens' THEN
    INSERT INTO errand.delegations (tenant, delegation_id, delegation_no, root_no, parent_no, step, call_index,
      contract_version, intent_delivered, childless, status, root_run_id, parent_run_id, child_run_id, target,
      contract_digest)
    SELECT p_tenant, y.d, nextval('errand.numbers'), coalesce(h.root_no, 0), coalesce(h.run_no, 0), y.step, y.call,
      y.version, false,
      (SELECT b.run_no FROM errand.run_headers b WHERE b.tenant = p_tenant AND b.run_id = y.child LIMIT 1) IS NULL, 'open',
      y.root,
      y.parent, y.child, y.target, y.digest
    FROM jsonb_to_recordset(p_batch->'opens') AS y(c integer, d text, root text, parent text, child text, step integer,
      call integer, target text, version integer, digest text)
    LEFT JOIN LATERAL (
      SELECT a.root_no, a.run_no FROM errand.run_headers a WHERE a.tenant = p_tenant AND a.run_id = y.parent LIMIT 1
    ) h ON true
    WHERE v_accepted[y.c]
    ON CONFLICT DO NOTHING;
  END IF;
  IF p_batch ? 'marks' OR v_close <> '{}' THEN
    FOR x IN
      SELECT z.d, bool_or(z.kind = 'close') AS closes, bool_or(z.kind = 'cancel') AS cancels,
        bool_or(z.kind = 'intent') AS intents
      FROM (
        SELECT y.d, y.kind FROM jsonb_to_recordset(coalesce(p_batch->'marks', '[]')) AS y(c integer, d text, kind text)
        WHERE v_accepted[y.c]
        UNION ALL
        SELECT y.d, 'close' FROM unnest(v_close) AS y(d)
      ) z
      GROUP BY z.d ORDER BY z.d
    LOOP
      -- delegations_pkey
      UPDATE errand.delegations d
      SET status = CASE WHEN x.closes THEN 'closed'
                        WHEN x.cancels AND d.status = 'open' THEN 'cancel_requested' ELSE d.status END,
        intent_delivered = d.intent_delivered OR x.intents
      WHERE d.tenant = p_tenant AND d.delegation_id = x.d;
    END LOOP;
  END IF;

  IF e_rows <> '{}' THEN
    -- inbox_pkey
    INSERT INTO errand.inbox AS b SELECT u.* FROM unnest(e_rows) AS u WHERE u.parent_no IS NOT NULL
    ON CONFLICT (parent_no, delegation_id, tenant) DO UPDATE
    SET envelope_no = excluded.envelope_no, status = excluded.status, kind = excluded.kind,
      child_run_id = excluded.child_run_id, digest = excluded.digest, body = excluded.body;
  END IF;
  IF p_batch ? 'reads' THEN
    FOR x IN
      SELECT y.d, y.digest, y.status,
        coalesce((w[y.i]).run_no, (SELECT o.parent_no FROM errand.delegations o
          WHERE o.tenant = p_tenant AND o.delegation_id = y.d LIMIT 1), 0) AS parent_no
      FROM jsonb_to_recordset(p_batch->'reads') AS y(c integer, i integer, d text, digest text, status text)
      WHERE v_accepted[y.c]
    LOOP
      -- inbox_pkey
      UPDATE errand.inbox b SET status = x.status
      WHERE b.parent_no = x.parent_no AND b.delegation_id = x.d AND b.tenant = p_tenant AND b.digest = x.digest;
    END LOOP;
  END IF;

  IF p_batch ? 'tickets' THEN
    INSERT INTO errand.tickets (tenant, ticket_id, ticket_no, opened_at, deadline_at, status, kind, run_id, root_run_id,
      body)
    SELECT p_tenant, y.ticket, nextval('errand.numbers'), v_now, v_now + y.deadline, 'open', y.kind, y.run,
      coalesce(h.root_run_id, y.root), p_texts[y.body]
    FROM jsonb_to_recordset(p_batch->'tickets') AS y(c integer, ticket text, run text, root text, kind text,
      deadline bigint, body integer)
    LEFT JOIN LATERAL (
      SELECT a.root_run_id FROM errand.run_headers a WHERE a.tenant = p_tenant AND a.run_id = y.run LIMIT 1
    ) h ON true
    WHERE v_accepted[y.c]
    ON CONFLICT DO NOTHING;
  END IF;
  IF p_batch ? 'decisions' THEN
    FOR x IN
      SELECT * FROM jsonb_to_recordset(p_batch->'decisions') AS u(c integer, ticket text, decision text, digest text)
      WHERE v_accepted[u.c]
    LOOP
      -- tickets_pkey
      UPDATE errand.tickets a SET status = 'decided', decision_id = x.decision, decision_digest = x.digest
      WHERE a.tenant = p_tenant AND a.ticket_id = x.ticket AND a.status = 'open';
    END LOOP;
  END IF;
  IF p_batch ? 'closings' THEN
    FOR x IN
      SELECT * FROM jsonb_to_recordset(p_batch->'closings') AS u(c integer, ticket text, reason text)
      WHERE v_accepted[u.c]
    LOOP
      -- tickets_pkey
      UPDATE errand.tickets a SET status = 'closed', close_reason = x.reason
      WHERE a.tenant = p_tenant AND a.ticket_id = x.ticket AND a.status = 'open';
    END LOOP;
  END IF;

  RETURN '{"at":' || v_now || ',"out":[' || substr(v_out, 2) || '],"ready":'
    || coalesce((SELECT json_agg(y.id)::text FROM unnest(v_ids, w_ready) AS y(id, ready) WHERE y.ready > 0), '[]')
    || ',"signal":'
    || coalesce((SELECT json_agg(y.id)::text FROM unnest(v_ids, w_signal) AS y(id, told) WHERE y.told), '[]')
    || '}';
END
$commit_group$;
