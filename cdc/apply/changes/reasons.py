"""Say why an event is refused, in the quarantine's words; both ways of applying share them."""

from typing import Final

# It is no event of its table.
NO_FRAME: Final = "the message does not begin with a schema id"
UNKNOWN_SCHEMA: Final = "the registry does not know its schema"
NOT_AN_EVENT: Final = "it is not a change event of its schema"
WRONG_TABLE: Final = "it is an event of another table"

# The lake cannot keep it.
NO_ROW: Final = "it has no row"
NO_KEY: Final = "it has no key"
UNCHANGED_IN_NEW: Final = "a value of a new row is only marked as unchanged"
NOT_APPENDED: Final = "it changes or deletes a row of a table of inserts only"

# Its row cannot be made.
AFTER_REFUSED: Final = "an unchanged value follows an event that was refused"
TOO_FEW_COPIES: Final = "more copies of a row were deleted than the table holds"
NO_OLD_ROW: Final = (
    "its key was changed, and the row that holds its unchanged values does not exist"
)
NO_ROW_TO_KEEP_FROM: Final = "an unchanged value has no row in the lake to be taken from"


def loss(column: str, kind: str, limit: str) -> str:
    """Return the reason why an event, or a row that was read, is refused for one of its columns.

    ``kind`` is the lake's type; ``limit`` describes the values that it cannot represent.
    """
    beyond = f": {limit}" if limit else ""
    return f"column {column} holds a value that {kind} cannot represent{beyond}"
