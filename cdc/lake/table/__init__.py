"""Reads a Delta table's commits and the position in them, and merges or replaces its rows."""
