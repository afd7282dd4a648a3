"""Applies the changes of one table, and follows changes of its structure."""
