SELECT errand.commit_group($1, $2::jsonb, $3::text[], $4::bigint) AS answer
