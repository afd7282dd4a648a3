"""What the walker knows of a database: facts of its catalogue, and nothing of what it is about."""

from dataclasses import dataclass, field
from typing import Final

OURS: Final = "soak_"
"""What the names of everything begin with that the walker makes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """The column that a foreign key leads to; ``table`` is quoted, the column not."""

    table: str
    column: str
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """``base`` and ``element`` are names of types without their domains and modifiers."""

    name: str
    type: str
    """As it stands in a statement."""
    base: str
    element: str = ""
    """Of an array; else empty."""
    modifier: int = -1
    domain: bool = False
    labels: tuple[str, ...] = ()
    """Of an enum, or of an array of one."""
    not_null: bool = False
    generated: bool = False
    default: bool = False
    sequence: bool = False
    """Whether its default gives each row another value."""
    references: Reference | None = None

    @property
    def quoted(self) -> str:
        return identifier(self.name)

    @property
    def ours(self) -> bool:
        return self.name.startswith(OURS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    schema: str
    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()
    unique: frozenset[str] = frozenset()
    """Columns of the key and of every other unique index."""
    referenced: bool = False
    partitioned: bool = False
    range_of: str = ""
    """The type of the one column by whose ranges it is partitioned."""
    parent: str = ""
    """Of a partition, quoted."""
    bound: str = ""
    rows: int = 0
    indexes: tuple[str, ...] = field(default=())
    """Those that the walker made, quoted."""

    @property
    def quoted(self) -> str:
        return f"{identifier(self.schema)}.{identifier(self.name)}"

    @property
    def plain(self) -> str:
        return f"{self.schema}.{self.name}"

    @property
    def given(self) -> tuple[Column, ...]:
        """The columns that a statement may give a value."""
        return tuple(column for column in self.columns if not column.generated)


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    tables: tuple[Table, ...]
    own_types: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Enums with their labels, and domains with none, as they stand in a statement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """``kind`` is what is counted; ``sql`` may be several statements."""

    kind: str
    sql: str


def identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """With any character, whatever ``standard_conforming_strings`` is."""
    doubled = text.replace("'", "''")
    return "E'" + doubled.replace("\\", "\\\\") + "'" if "\\" in text else f"'{doubled}'"
