"""Reading log files at rest: plain or compressed, and the times that they print."""
