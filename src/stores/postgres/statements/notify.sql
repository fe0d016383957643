-- Outside any commit, and without waiting for the disk: a hint may be lost
SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, $2)
