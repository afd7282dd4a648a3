"""Defines the steps by which a lake table follows a change of its source table's structure."""

from dataclasses import dataclass
from typing import Final

from cdc.events.schema import Column
from cdc.events.structure.structure import Structure
from cdc.tables import TableId, TableMode

READ_AGAIN: Final = "run wal2lake resnapshot TABLE"


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """Rename a column; no other column has the new name at this step."""

    old: str
    new: str


@dataclass(frozen=True, slots=True)
class DropColumn:
    """Drop a column with its values."""

    name: str


@dataclass(frozen=True, slots=True)
class AddColumn:
    """Add a column; ``value`` is what every existing row shows in it, as Postgres's text."""

    column: Column
    value: str | None = None


@dataclass(frozen=True, slots=True)
class WidenColumn:
    """Change a column's type; a plain cast of every existing value to ``type`` is exact."""

    name: str
    type: str


@dataclass(frozen=True, slots=True)
class ChangeMode:
    """Change how rows are identified; a new key follows in a ``ChangeKey`` of its own."""

    mode: TableMode


@dataclass(frozen=True, slots=True)
class ChangeKey:
    """Change the key; no two existing rows have equal values in these columns."""

    key: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RenameTable:
    """Follow the table under another name."""

    table: TableId


@dataclass(frozen=True, slots=True)
class DropTable:
    """Note that the source no longer has the table."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Stop following the table until someone applies the remedy."""

    reason: str
    remedy: str = READ_AGAIN


Step = (
    RenameColumn
    | DropColumn
    | AddColumn
    | WidenColumn
    | ChangeMode
    | ChangeKey
    | RenameTable
    | DropTable
    | Stop
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Holds one row of ``wal2lake.structure``; ``structure`` is None if the table was dropped."""

    structure: Structure | None
    rewrite: int = 0  # pg_event_trigger_table_rewrite_reason(); 0: none
    converted: bool = False
    """Whether the rewrite may have used an expression rather than a plain cast."""
    unpublished: bool = False
    """Whether some or all changes of the table stopped being published at this note."""
    unnoted: bool = False
    """Whether earlier notes of the table may be missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """Holds the steps, and the structure to store with the table once they are done."""

    steps: tuple[Step, ...]
    structure: Structure | None

    @property
    def stops(self) -> tuple[Stop, ...]:
        """Return the stops among the steps; if there are any, there is no other step."""
        return tuple(step for step in self.steps if isinstance(step, Stop))
