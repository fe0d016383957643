-- A transaction id of its own: every transaction that has numbered anything before has a lower one. Nothing is written
SELECT set_config('synchronous_commit', 'off', true), pg_current_xact_id()::text AS mine
