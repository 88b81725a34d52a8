"""Orders become effects here, once each: admit, claim, act, report."""
