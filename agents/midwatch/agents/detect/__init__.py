"""Step 3, detect: takes the events of a job and gives findings and incidents. Redis holds its state."""
