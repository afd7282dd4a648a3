"""Turns rows of the log into one change per key."""
