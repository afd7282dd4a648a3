"""wal2lake and the way of most tutorials as a whole, on the same load in the same run."""
