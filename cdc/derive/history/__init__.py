"""The history of a captured table: every version of its rows, from the events of the log."""
