"""The demo: the real chain on this machine, and a training that fails on purpose."""
