"""Define what a definition of kind history declares, and the columns of its result. Pure."""

from dataclasses import dataclass
from typing import Final

FROM_LSN: Final = "_from_lsn"
TO_LSN: Final = "_to_lsn"
FROM: Final = "_from"
TO: Final = "_to"
OP: Final = "_op"
EPOCH: Final = "_epoch"
VALID_LSN: Final = "_valid_lsn"
VALID_FROM: Final = "_valid_from"
VALID_TO: Final = "_valid_to"
COMMIT_EPOCH: Final = "_commit_epoch"
COMMIT_LSN: Final = "_commit_lsn"
END_OF_EPOCH: Final = 2**63 - 1
"""The LSN at which versions end that the next epoch begins anew: behind every commit."""
OWN: Final = {
    FROM_LSN: "BIGINT",
    TO_LSN: "BIGINT",
    FROM: "TIMESTAMP WITH TIME ZONE",
    TO: "TIMESTAMP WITH TIME ZONE",
    OP: "VARCHAR",
    EPOCH: "BIGINT",
    VALID_LSN: "BIGINT",
    VALID_FROM: "TIMESTAMP WITH TIME ZONE",
    VALID_TO: "TIMESTAMP WITH TIME ZONE",
    COMMIT_EPOCH: "BIGINT",
    COMMIT_LSN: "BIGINT",
}
"""The columns of a history besides those of its table, with their types in DuckDB's words.

``FOR SYSTEM_TIME AS OF`` finds versions by the last five: from which LSN of its epoch, and between
which times, a version is taken; and which transaction inserted its row.
"""


@dataclass(frozen=True, slots=True)
class History:
    """Says which columns of its only input make a new version when they change."""

    track: tuple[str, ...]  # empty: all


def at_lsn(epoch: int, lsn: int | None) -> str:
    """Return the condition of SQL for the versions at an LSN; without one, for those of now."""
    if lsn is None:
        return f"{TO_LSN} IS NULL"
    ended = f"{TO_LSN} IS NULL OR {TO_LSN} > {lsn:d}"
    return f"{EPOCH} = {epoch:d} AND {FROM_LSN} <= {lsn:d} AND ({ended})"
