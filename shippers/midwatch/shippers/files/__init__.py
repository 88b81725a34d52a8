"""Log files as they grow, rotate and vanish: found, tailed, remembered."""
