"""`midwatch run` starts a job so that it can be started again: its spec, its shim, its shipper."""
