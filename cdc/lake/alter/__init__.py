"""Alters tables: columns, names, properties; without Spark where that is possible."""
