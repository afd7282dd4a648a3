"""Event triggers in the source that note every change of structure."""
