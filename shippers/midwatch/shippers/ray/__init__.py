"""Ships the driver logs of a Ray head, read by its API from anywhere."""
