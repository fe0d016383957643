-- run_headers_id, runs_pkey, log_signal, inbox_unread; one snapshot for all of it
SELECT r.signal_seq AS "signalSeq", r.control_seq AS "controlSeq",
  (SELECT json_agg(json_build_object('seq', l.seq, 'tenant', h.tenant, 'rootRunId', h.root_run_id, 'threadId', h.thread_id,
      'runId', h.run_id, 'source', 'signal', 'version', l.version, 'signal', l.signal, 'at', l.at, 'body', l.body,
      'operationId', l.operation_id, 'digest', l.digest) ORDER BY l.signal)::text
    FROM errand.log l WHERE l.run_no = h.run_no AND l.signal > 0 AND l.signal > $3) AS signals,
  (SELECT json_agg(json_build_object('tenant', b.tenant, 'delegationId', b.delegation_id, 'parentRunId', b.parent_run_id,
      'childRunId', b.child_run_id, 'kind', b.kind, 'digest', b.digest, 'body', b.body, 'status', b.status)
      ORDER BY b.envelope_no)::text
    FROM errand.inbox b WHERE b.parent_no = h.run_no AND b.status = 'unread') AS inbox
FROM errand.run_headers h
JOIN errand.runs r ON r.run_no = h.run_no
WHERE h.tenant = $1 AND h.run_id = $2
