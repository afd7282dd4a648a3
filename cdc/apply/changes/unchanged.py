"""Tell values that are only marked as unchanged: the connector's placeholder in some form.

The form follows the column's type: the placeholder is the text itself (for hstore, a pair of it),
its bytes, or an array that holds one of those, its bytes as numbers, or a UUID derived from it.
Every form has its Spark text and its Python side by side.
"""

import hashlib
import uuid
from dataclasses import dataclass
from typing import Any

from cdc.apply.changes.scalars import PRIMITIVES, kind_of
from cdc.events.schema import TableSchema
from cdc.events.values.lake_types import branches
from cdc.events.values.sql_text import spark_string


def maybe_unchanged(schema: TableSchema) -> list[int]:
    """Return the numbers of the columns that may arrive marked as unchanged.

    These are the columns outside the key whose large values Postgres stores out of line.
    """
    kinds = ("string", "binary", "decimal", "array")
    return [
        number
        for number, column in enumerate(schema.columns)
        if column.type.startswith(kinds) and column.name not in schema.key
    ]


@dataclass(frozen=True, slots=True)
class Unchanged:
    """Holds the SQL condition for a field with the placeholder, and the values it is true of."""

    sql: str
    forms: tuple[Any, ...]


def unchanged_when(
    branch: Any,  # noqa: ANN401 - Avro is JSON
    raw: str,
    placeholder: str,
) -> Unchanged | None:
    """Return when the field ``raw`` holds the placeholder; None if it has no form of it."""
    kind = kind_of(branch)
    pair = f'{{"{placeholder}":"{placeholder}"}}'
    if kind == "string":
        sql = f"{raw} IN ({spark_string(placeholder)}, {spark_string(pair)})"
        return Unchanged(sql, (placeholder, pair))
    if kind == "bytes":
        return Unchanged(f"{raw} = {_binary(placeholder)}", (placeholder.encode(),))
    return (
        _unchanged_array(kind_of(branches(branch["items"])[0]), raw, placeholder)
        if kind == "array"
        else None
    )


def _unchanged_array(item: str, raw: str, placeholder: str) -> Unchanged | None:
    data = placeholder.encode()
    if item == "string":
        digest = hashlib.md5(data, usedforsecurity=False).digest()
        derived = str(uuid.UUID(bytes=digest, version=3))
        sql = f"{raw} IN (array({spark_string(placeholder)}), array({spark_string(derived)}))"
        return Unchanged(sql, ([placeholder], [derived]))
    if item == "bytes":
        return Unchanged(f"{raw} = array({_binary(placeholder)})", ([data],))
    if item in {"int", "long"}:
        signed = [int.from_bytes([byte], signed=True) for byte in data]
        numbers = ", ".join(map(str, signed))
        sql = f"{raw} = CAST(array({numbers}) AS array<{PRIMITIVES[item]}>)"
        return Unchanged(sql, (signed,))
    return None


def _binary(text: str) -> str:
    return f"X'{text.encode().hex()}'"
