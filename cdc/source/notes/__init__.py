"""Event triggers in the source that record every change of a table's structure."""
