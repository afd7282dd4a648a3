"""Define what a history declares, and make versions of rows from events."""
