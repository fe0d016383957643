SELECT running, runs FROM errand.erase_tenant($1)
