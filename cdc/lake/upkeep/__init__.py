"""Keeps Delta tables small: compaction, old versions, and the files of control tables."""
