"""Rebuilds a table from the log, from readings, or from Kafka."""
