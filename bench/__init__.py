"""The benchmark: wal2lake and the way of most tutorials, on the same load in the same run."""
