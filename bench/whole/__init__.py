"""wal2lake as a whole, from a commit in Postgres until it is read in the lake."""
