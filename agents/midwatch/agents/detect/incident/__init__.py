"""All that happens to one attempt of a job, folded into findings and at most one incident. Pure."""
