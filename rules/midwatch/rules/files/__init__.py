"""Rule files in midwatch's own format: their reader, their checks, their writer."""
