"""Finds the row of a key by one index per data file, made from the file's key columns."""
