"""Where it comes from: the sidecar that follows a job's files on a node and publishes them."""
