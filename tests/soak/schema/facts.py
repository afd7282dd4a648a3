"""What the walk knows of a database: facts from its catalogue, but not what it is about."""

from dataclasses import dataclass, field
from typing import Final

OURS: Final = "soak_"
"""The prefix of all names that the walk creates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """The column that a foreign key references; ``table`` is quoted, ``column`` is not."""

    table: str
    column: str
    rows: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column; ``base`` and ``element`` are type names without domains and modifiers."""

    name: str
    type: str
    """The type as written in a statement."""
    base: str
    element: str = ""
    """The element type of an array; otherwise empty."""
    modifier: int = -1
    domain: bool = False
    labels: tuple[str, ...] = ()
    """The labels of an enum or of an array of one."""
    not_null: bool = False
    generated: bool = False
    default: bool = False
    sequence: bool = False
    """Whether the default gives each row another value."""
    references: Reference | None = None

    @property
    def quoted(self) -> str:
        """Return the quoted name."""
        return identifier(self.name)

    @property
    def ours(self) -> bool:
        """Return whether the walk created the column."""
        return self.name.startswith(OURS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Describes a table by the facts that decide which changes make sense."""

    schema: str
    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()
    unique: frozenset[str] = frozenset()
    """Columns of the key and of every other unique index."""
    referenced: bool = False
    partitioned: bool = False
    range_of: str = ""
    """The type of the only column by whose ranges the table is partitioned."""
    parent: str = ""
    """The parent of a partition, quoted."""
    bound: str = ""
    rows: int = 0
    indexes: tuple[str, ...] = field(default=())
    """The indexes that the walk created, quoted."""

    @property
    def quoted(self) -> str:
        """Return the quoted name with its schema."""
        return f"{identifier(self.schema)}.{identifier(self.name)}"

    @property
    def plain(self) -> str:
        """Return the name with its schema, unquoted."""
        return f"{self.schema}.{self.name}"

    @property
    def given(self) -> tuple[Column, ...]:
        """The columns that a statement may give a value."""
        return tuple(column for column in self.columns if not column.generated)


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """Holds the tables and own types of a database."""

    tables: tuple[Table, ...]
    own_types: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Enums with their labels, and domains with none, as written in a statement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """SQL, maybe of several statements, with the ``kind`` that is counted."""

    kind: str
    sql: str


def identifier(name: str) -> str:
    """Quote an identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Quote any text, whatever ``standard_conforming_strings`` is."""
    doubled = text.replace("'", "''")
    return "E'" + doubled.replace("\\", "\\\\") + "'" if "\\" in text else f"'{doubled}'"
