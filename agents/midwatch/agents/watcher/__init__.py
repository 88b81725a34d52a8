"""Reports what the schedulers show as events: states, exit codes, who cancelled."""
