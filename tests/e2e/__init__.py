"""End-to-end tests of wal2lake; a package, so that their shared installation ends with it."""
