"""Makes SQL conditions for values that failed, from the names of a field and its conversion."""


def lost(raw: str, made: str) -> str:
    """Return the condition that a value was given but has no exact form."""
    return f"({raw} IS NOT NULL AND {made} IS NULL)"


def any_of(*conditions: str | None) -> str | None:
    """Return whether any condition is true; an unknown one counts as false."""
    given = [f"coalesce({condition}, false)" for condition in conditions if condition]
    return " OR ".join(given) or None


def not_text(made: str, target: str) -> str | None:
    """Spark's decoder accepts any bytes as text, but readers of the lake would fail at them.

    In Python the decoder itself refuses such bytes (cdc/apply/local/row_reader.py).
    """
    return f"NOT is_valid_utf8({made})" if target == "string" else None
