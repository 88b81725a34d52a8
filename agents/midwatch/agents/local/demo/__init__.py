"""The whole real chain on this machine, failing on purpose: a rescue, a finding, a refusal, and a judge."""
