"""Commits a small change to a table from this process: rows, deletion vectors, one log entry."""
