"""Defines the types that the results of queries have in the lake."""

import re
from dataclasses import dataclass
from typing import Any, Final

from cdc.errors import CdcError, ErrorKind
from cdc.events.values.sql_text import postgres_name

_STORED: Final = re.compile(
    r"(BOOLEAN|SMALLINT|INTEGER|BIGINT|FLOAT|DOUBLE|VARCHAR|BLOB|DATE|TIMESTAMP"
    r"|TIMESTAMP WITH TIME ZONE|DECIMAL\(\d+,\d+\))(\[\])?"
)
_LAKE: Final = {
    "BOOLEAN": "boolean",
    "SMALLINT": "short",
    "INTEGER": "integer",
    "BIGINT": "long",
    "FLOAT": "float",
    "DOUBLE": "double",
    "VARCHAR": "string",
    "BLOB": "binary",
    "DATE": "date",
    "TIMESTAMP": "timestamp_ntz",
    "TIMESTAMP WITH TIME ZONE": "timestamp",
}
"""Delta's names of the types; it writes a decimal as DuckDB does, in small letters."""
_LARGE: Final = "HUGEINT"
"""DuckDB's sum of integers. In Postgres it is a numeric."""


@dataclass(frozen=True, slots=True)
class Output:
    """Names a column of a query's result, and its type in DuckDB's words."""

    name: str
    type: str

    @property
    def quoted(self) -> str:
        """Return the name as SQL."""
        return postgres_name(self.name)


def stored_type(column: str, kind: str) -> str:
    """Return the type in which the lake stores a column of this type.

    Raises CONFIG where it has none.
    """
    stored = kind.replace(_LARGE, "DECIMAL(38,0)")
    if not _STORED.fullmatch(stored):
        raise CdcError(
            ErrorKind.CONFIG,
            f"column {column} is of type {kind.lower()}, which the lake cannot hold",
            remedy=f"cast it, such as {column}::text",
        )
    return stored


def lake_field(output: Output) -> dict[str, Any]:
    """Return the column as Delta describes it in a schema."""
    return {"name": output.name, "type": _lake_type(output.type), "nullable": True, "metadata": {}}


def _lake_type(kind: str) -> str | dict[str, Any]:
    if kind.endswith("[]"):
        element = _lake_type(kind.removesuffix("[]"))
        return {"type": "array", "elementType": element, "containsNull": True}
    return _LAKE.get(kind) or kind.lower()
