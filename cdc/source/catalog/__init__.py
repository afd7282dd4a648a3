"""Reads the source's catalogue: its tables, their columns, and how their rows are identified."""
