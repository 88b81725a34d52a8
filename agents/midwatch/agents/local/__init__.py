"""The watch on one machine: `up`, the demo, and the services that both start."""
