"""Ray as a scheduler, through the HTTP of its Jobs API."""
