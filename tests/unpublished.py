"""How a table is taken out of the publication so that nobody hears of it: by no note either."""

from typing import Final

_UNNOTED: Final = (
    "SET event_triggers = off; ALTER PUBLICATION wal2lake {} TABLE {}; RESET event_triggers"
)


def taken_out(*tables: str) -> str:
    """The statements after which what is written to the tables is in no log."""
    return _UNNOTED.format("DROP", ", ".join(tables))


def put_back(*tables: str) -> str:
    """The statements after which it is again."""
    return _UNNOTED.format("ADD", ", ".join(tables))


def unseen(table: str, statements: str) -> str:
    """One transaction that no log tells of."""
    return f"BEGIN; {taken_out(table)}; {statements}; {put_back(table)}; COMMIT"
