"""Numbers the columns of a table with column mapping by name."""

from collections.abc import Mapping
from typing import Any, Final
from uuid import uuid4

from cdc.lake.commit.table_metadata import FIELD_ID, PHYSICAL_NAME

LAST_ID: Final = "delta.columnMapping.maxColumnId"


class ColumnIds:
    """Gives every column, and every field inside one, an id and a name in data files."""

    def __init__(self, last: int = 0) -> None:
        """Number on from ``last``, the highest id that the table has ever had."""
        self.last = last

    def field(self, field: Mapping[str, Any]) -> dict[str, Any]:
        """Return the field with its own and those of the fields inside its type."""
        self.last += 1
        own = {FIELD_ID: self.last, PHYSICAL_NAME: f"col-{uuid4()}"}
        return {
            **field,
            "type": self._type(field["type"]),
            "metadata": {**field["metadata"], **own},
        }

    def _type(self, described: Any) -> Any:  # noqa: ANN401 - a name, or a description of one
        if isinstance(described, str):
            return described
        inside = {"struct": ("fields",), "array": ("elementType",), "map": ("keyType", "valueType")}
        parts = {name: self._part(described[name]) for name in inside[described["type"]]}
        return {**described, **parts}

    def _part(self, part: Any) -> Any:  # noqa: ANN401
        if isinstance(part, list):
            return [self.field(field) for field in part]
        return self._type(part)
