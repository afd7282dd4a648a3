"""Reads a table again from the source while all others go on."""
