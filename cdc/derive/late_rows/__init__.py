"""Keeps the table of the late rows of a derived table, whose commits have the watermark."""
