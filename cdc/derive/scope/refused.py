"""Defines the error with which reading a scope ends where there is none."""


class WholeError(Exception):
    """Says why a table is calculated as a whole."""
