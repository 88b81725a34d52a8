"""Relations between the lines of one attempt, one file per mechanism. Each gives a feature and a reason."""
