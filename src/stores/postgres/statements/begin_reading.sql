-- A transaction id of its own: every transaction that has numbered anything before has a lower one. Nothing is written.
-- A standby gives none: there it is the last one that the standby knows to have ended.
SELECT set_config('synchronous_commit', 'off', true),
  CASE WHEN pg_is_in_recovery() THEN (pg_snapshot_xmax(pg_current_snapshot())::text::numeric - 1)::text
    ELSE pg_current_xact_id()::text END AS mine
