"""`midwatch up`: the whole watch as one tree of processes on this machine. They end together."""
