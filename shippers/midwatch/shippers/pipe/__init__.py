"""A training piped into the shipper: spooled to disk, then shipped by a process of its own."""
