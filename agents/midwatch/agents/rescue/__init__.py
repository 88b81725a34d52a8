"""A person starts a job again: `midwatch resume`."""
