"""Define what a definition of kind history declares, and the columns of its result. Pure."""

from dataclasses import dataclass
from typing import Final

FROM_LSN: Final = "_from_lsn"
TO_LSN: Final = "_to_lsn"
FROM: Final = "_from"
TO: Final = "_to"
OP: Final = "_op"
EPOCH: Final = "_epoch"
OWN: Final = {
    FROM_LSN: "BIGINT",
    TO_LSN: "BIGINT",
    FROM: "TIMESTAMP WITH TIME ZONE",
    TO: "TIMESTAMP WITH TIME ZONE",
    OP: "VARCHAR",
    EPOCH: "BIGINT",
}
"""The columns of a history besides those of its table, with their types in DuckDB's words."""


@dataclass(frozen=True, slots=True)
class History:
    """Which columns of its only input make a new version when they change."""

    track: tuple[str, ...]  # empty: all


def at_lsn(epoch: int, lsn: int | None) -> str:
    """Return the condition of SQL for the versions at an LSN; without one, for those of now."""
    if lsn is None:
        return f"{TO_LSN} IS NULL"
    ended = f"{TO_LSN} IS NULL OR {TO_LSN} > {lsn:d}"
    return f"{EPOCH} = {epoch:d} AND {FROM_LSN} <= {lsn:d} AND ({ended})"
