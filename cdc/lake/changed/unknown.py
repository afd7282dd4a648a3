"""Says why the rows that differ between two versions are not known."""


class UnknownChangesError(Exception):
    """Says why the rows that differ are not known, or are too many to be worth it."""
