"""Digests of whole rows, for tables without a key."""

from cdc.events.schema import TableSchema
from cdc.events.values.sql_text import spark_name, spark_string


def row_hash(schema: TableSchema) -> str:
    """Return SQL text of a digest that two rows share only if all their values are equal.

    The digested text holds each value with its column and length, but no nulls. So different rows
    have different texts, and a column added later does not change the digest of rows that are null
    in it.
    """
    parts = ", ".join(_hashed(column.name, column.type) for column in schema.columns)
    return f"sha2(concat({parts}), 256)"


def _hashed(name: str, kind: str) -> str:
    text = _canonical(spark_name(name), kind)
    begin = spark_string(f"{len(name)}:{name}=")
    return f"IF({spark_name(name)} IS NULL, '', concat({begin}, length({text}), ':', {text}))"


def _canonical(value: str, kind: str) -> str:
    if kind.startswith("array<"):
        text = _canonical("e", kind.removeprefix("array<").removesuffix(">"))
        element = f"IF(e IS NULL, '-', concat(length({text}), ':', {text}))"
        return f"concat_ws(',', transform({value}, e -> {element}))"
    if kind == "binary":
        return f"hex({value})"
    if kind == "timestamp":
        return f"CAST(unix_micros({value}) AS string)"
    return value if kind == "string" else f"CAST({value} AS string)"
