"""Names of tables, patterns over them, and the states a table can be in."""

from dataclasses import dataclass
from enum import Enum
from fnmatch import fnmatchcase
from typing import Literal

from cdc.errors import CdcError, ErrorKind

CONTROL_SCHEMA = "wal2lake"
"""The schema of our own tables in the source: never part of ``source.tables``."""

HEARTBEAT_TABLE = "heartbeat"
SIGNAL_TABLE = "signal"


@dataclass(frozen=True, slots=True, order=True)
class TableId:
    """A table of the source, by its schema and its name, as Postgres spells them."""

    schema: str
    name: str

    @classmethod
    def parse(cls, text: str) -> "TableId":
        """``schema.table``; raises CONFIG when there is no dot or an empty part."""
        schema, dot, name = text.partition(".")
        if not (schema and dot and name):
            raise CdcError(
                ErrorKind.CONFIG,
                f"{text!r} is not a table name",
                remedy="write it as schema.table",
            )
        return cls(schema, name)

    def topic(self, prefix: str) -> str:
        """The Kafka topic of this table's change events."""
        return f"{prefix}.{self.schema}.{self.name}"

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"


@dataclass(frozen=True, slots=True, order=True)
class ColumnId:
    """A column of a table of the source, as Postgres spells it."""

    table: TableId
    name: str

    def __str__(self) -> str:
        return f"{self.table}.{self.name}"


HEARTBEAT = TableId(CONTROL_SCHEMA, HEARTBEAT_TABLE)
SIGNAL = TableId(CONTROL_SCHEMA, SIGNAL_TABLE)
STRUCTURE = TableId(CONTROL_SCHEMA, "structure")
"""Where an event trigger of the source notes every change of a table's structure."""


def matches(table: TableId, patterns: list[str]) -> bool:
    """Whether any pattern ``schema.table`` (with ``*`` and ``?``) names the table."""
    return any(fnmatchcase(str(table), pattern) for pattern in patterns)


def names_column(table: TableId, column: str, patterns: list[str]) -> bool:
    """Whether any pattern ``schema.table.column`` names the column."""
    return any(fnmatchcase(f"{table}.{column}", pattern) for pattern in patterns)


SchemaPolicy = Literal["evolve", "ignore", "stop"]
"""What becomes of the lake's table when the structure of its source changes."""


class TableMode(Enum):
    """How change events become rows: from the source's catalogue and the configuration."""

    KEYED = "keyed"  # primary key or identity index: one row per key
    APPEND = "append"  # no key, explicit choice: inserts only
    MULTISET = "multiset"  # no key, REPLICA IDENTITY FULL: exact with duplicates


class TableState(Enum):
    """Set by the job, stored in the ledger."""

    SNAPSHOTTING = "snapshotting"  # the job: no transaction of the stream is applied yet
    STREAMING = "streaming"  # the job: at the cut of the ledger's row
    DEGRADED = "degraded"  # the job: streaming, but an event of it is in quarantine
    RESNAPSHOTTING = "resnapshotting"  # the job: it is read again and waits at an older cut
    STOPPED = "stopped"  # the job: an event could not be followed; the reason stands beside it
