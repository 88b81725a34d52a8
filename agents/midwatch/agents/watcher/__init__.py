"""The scheduler's own word, turned into events: states, exit codes, who cancelled."""
