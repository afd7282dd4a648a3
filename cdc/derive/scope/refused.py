"""The error with which reading a scope ends where there is none."""


class WholeError(Exception):
    """Raised with the reason for which a table is calculated as a whole."""
