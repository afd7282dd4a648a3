"""Downloads, checks and installs the jars and archives that wal2lake runs."""
