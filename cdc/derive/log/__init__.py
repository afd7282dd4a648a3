"""Reads a captured table's events between two cuts, in order, as a derived table needs them."""
