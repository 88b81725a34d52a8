"""Settings: their schema, kinds, file, variables and page."""
