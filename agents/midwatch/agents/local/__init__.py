"""The watch on one machine: up, demo, and the services that they start."""
