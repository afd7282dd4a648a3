"""Makes sure that no byte of a table's deleted rows is left in lake and topic."""
