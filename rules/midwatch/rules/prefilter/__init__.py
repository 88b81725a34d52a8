"""The prefilter: literals that the scan looks for before an re2 search, and their packing into automata."""
