"""Reads a table again from the source while the others go on."""
