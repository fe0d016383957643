SELECT trees, runs FROM errand.prune_thread($1, $2, $3, $4, $5)
