"""The whole of wal2lake; a package, so that the installation they share ends with them."""
