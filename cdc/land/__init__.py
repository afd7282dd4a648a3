"""Appends every change event, untouched, to the log."""
