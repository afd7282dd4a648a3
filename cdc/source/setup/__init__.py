"""Check the source's prerequisites, and create what wal2lake needs in it."""
