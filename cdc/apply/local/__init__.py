"""Decodes and orders a small batch in this process, as cdc/apply/changes does by Spark."""
