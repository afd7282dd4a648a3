"""Checks and creates what must exist in the source."""
