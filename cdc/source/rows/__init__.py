"""Reads rows of the source as text."""
