"""wal2lake: Delta Lake tables that stay equal to Postgres tables."""

__version__ = "0.1.0"
