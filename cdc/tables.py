"""Define names of tables and patterns that match them, and a table's modes and states."""

from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatchcase
from typing import Final, Literal

from cdc.errors import CdcError, ErrorKind

CONTROL_SCHEMA = "wal2lake"
"""The schema of wal2lake's own tables in the source, which ``source.tables`` may not name."""

HEARTBEAT_TABLE = "heartbeat"


@dataclass(frozen=True, slots=True, order=True)
class TableId:
    """Names a source table by its schema and name, as Postgres spells them."""

    schema: str
    name: str

    @classmethod
    def parse(cls, text: str) -> "TableId":
        """Parse ``schema.table``; raise CONFIG if the dot or a part is missing."""
        schema, dot, name = text.partition(".")
        if not (schema and dot and name):
            raise CdcError(
                ErrorKind.CONFIG,
                f"{text!r} is not a table name",
                remedy="write it as schema.table",
            )
        return cls(schema, name)

    def topic(self, prefix: str) -> str:
        """Return the Kafka topic of this table's change events."""
        return f"{prefix}.{self.schema}.{self.name}"

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"


@dataclass(frozen=True, slots=True, order=True)
class ColumnId:
    """Names a column of a source table, as Postgres spells it."""

    table: TableId
    name: str

    def __str__(self) -> str:
        return f"{self.table}.{self.name}"


HEARTBEAT = TableId(CONTROL_SCHEMA, HEARTBEAT_TABLE)
STRUCTURE = TableId(CONTROL_SCHEMA, "structure")
"""The table in which the source's event triggers note every change of a table's structure."""


def matches(table: TableId, patterns: list[str]) -> bool:
    """Return whether any pattern ``schema.table`` (with ``*`` and ``?``) matches the table."""
    return any(fnmatchcase(str(table), pattern) for pattern in patterns)


def names_column(table: TableId, column: str, patterns: list[str]) -> bool:
    """Return whether any pattern ``schema.table.column`` matches the column."""
    return any(fnmatchcase(f"{table}.{column}", pattern) for pattern in patterns)


SchemaPolicy = Literal["evolve", "ignore", "stop"]
"""What happens to a lake table when its source table's structure changes."""


class TableMode(Enum):
    """Says how change events become rows; the source's catalogue and the configuration decide."""

    KEYED = "keyed"  # primary key or identity index: one row per key
    APPEND = "append"  # no key, by explicit choice: inserts only
    MULTISET = "multiset"  # no key, REPLICA IDENTITY FULL: copies of equal rows are counted


class TableState(Enum):
    """Names the state of a table, set by the job and stored in the ledger."""

    SNAPSHOTTING = "snapshotting"  # no transaction of the stream is applied yet
    STREAMING = "streaming"  # at the cut of the ledger's row
    DEGRADED = "degraded"  # streaming, but an event of it is in quarantine
    RESNAPSHOTTING = "resnapshotting"  # being read again, and waiting at an older cut
    BUILDING = "building"  # derived, and not calculated for the first time yet
    LAGGING = "lagging"  # derived, and still at an older cut
    STOPPED = "stopped"  # an event could not be followed; the reason is stored with the state


BEING_READ: Final = frozenset({TableState.SNAPSHOTTING.value, TableState.RESNAPSHOTTING.value})
"""States of a table that is behind a cut because its rows are being read from the source."""
