"""Take a table out of the publication without a note, so that its changes reach no log."""

from typing import Final

_UNNOTED: Final = (
    "SET event_triggers = off; ALTER PUBLICATION wal2lake {} TABLE {}; RESET event_triggers"
)


def taken_out(*tables: str) -> str:
    """Return the statements after which changes to the tables reach no log."""
    return _UNNOTED.format("DROP", ", ".join(tables))


def put_back(*tables: str) -> str:
    """Return the statements after which changes to the tables reach the log again."""
    return _UNNOTED.format("ADD", ", ".join(tables))


def unseen(table: str, statements: str) -> str:
    """Return one transaction with the statements, whose changes reach no log."""
    return f"BEGIN; {taken_out(table)}; {statements}; {put_back(table)}; COMMIT"
