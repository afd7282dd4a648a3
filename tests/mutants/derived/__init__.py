"""Bugs of derived tables."""
