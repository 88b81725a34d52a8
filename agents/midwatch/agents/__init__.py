"""The agents: they turn log lines into incidents, verdicts, decisions and commands, and carry these out."""
