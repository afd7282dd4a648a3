"""Measurements: wal2lake, and the way of most tutorials on the same changes in the same run."""
