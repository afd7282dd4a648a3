"""Finds the rows in which two tables differ, and merges the difference."""
