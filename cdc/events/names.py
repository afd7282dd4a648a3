"""Find names of tables and columns that the lake cannot have, and say why.

This is checked before a table is captured (cdc/source/catalog/table_findings.py) and again when its
structure changes (cdc/events/structure/column_steps.py). All other Postgres names are kept
unchanged.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cdc.tables import TableId

OURS: Final = "_cdc_"
CONTROL_DIRECTORY: Final = "_wal2lake"
"""The lake's directory for wal2lake's own tables, beside the directories of the schemas."""
_OF_DELTA: Final = "_delta_log"  # what makes a directory a table
OF_ENGINES: Final = frozenset(
    {
        "__condition__",
        "__delta_internal_is_row_deleted",
        "_file_name_",
        "_metadata",
        "_row_dropped_",
        "_row_id_",
        "_source_row_present_",
        "_target_row_present_",
        "_tmp_metadata_row_index",
        "deletionvectorid",
    }
)
"""Columns that Spark and Delta add to a table's own, regardless of their names. If two have the
same name, a MERGE fails or an UPDATE writes NULL. tests/spark/lake/test_names.py tries each."""
_PLAIN: Final = re.compile(r"[A-Za-z0-9_-]+")
_NOT_AVRO: Final = re.compile(r"[^A-Za-z0-9_]")
_NAMES: Final = frozenset({"name", "namespace"})
_TYPES: Final = frozenset({"type", "items", "values"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedName:
    """Says why the lake cannot have the name of a table or column, and what the remedy is."""

    table: TableId
    reason: str
    remedy: str


def avro_name(name: str) -> str:
    """Return the connector's Avro name for a column or for one part of a schema's name.

    It replaces UTF-16 units, so a character beyond the first 65,536 becomes two underscores.
    """
    units = name.encode("utf-16-be", "surrogatepass")
    pairs = zip(units[::2], units[1::2], strict=True)
    spelled = _NOT_AVRO.sub("_", "".join(chr(high << 8 | low) for high, low in pairs))
    return f"_{spelled}" if spelled[:1].isdigit() else spelled


def without_case(name: str) -> str:
    """Return a text that is equal for names Spark takes for the same.

    Case is folded character by character, as Java compares.
    """
    return "".join(map(_character_without_case, name))


def _character_without_case(character: str) -> str:
    upper = character.upper()
    return (upper if len(upper) == 1 else character).lower()[:1]


def column_refusals(table: TableId, names: Sequence[str]) -> Iterator[RefusedName]:
    """Yield a refusal for each of the table's column names that the lake cannot have."""
    in_avro: dict[str, str] = {}
    in_lake: dict[str, str] = {}
    for name in names:
        first = in_avro.setdefault(avro_name(name).lower(), name)
        other = in_lake.setdefault(without_case(name), name) if first == name else first
        if other != name:
            reason = f"columns {other} and {name} have one name in Avro or in the lake"
            yield RefusedName(table=table, reason=reason, remedy="rename one of them")
        if reason := _reserved(name):
            yield RefusedName(table=table, reason=f"column {name}: {reason}", remedy="rename it")


def _reserved(name: str) -> str:
    if name.lower().startswith(OURS):
        return f"names that begin with {OURS} are reserved for wal2lake"
    if name.lower() in OF_ENGINES:
        return "Spark and Delta have a column of their own with this name"
    return ""


def table_refusal(table: TableId) -> RefusedName | None:
    """Return why the lake cannot have a table of this name, or None if it can."""
    if not (_PLAIN.fullmatch(table.schema) and _PLAIN.fullmatch(table.name)):
        return RefusedName(
            table=table,
            reason="has a name that a Kafka topic cannot have",
            remedy="rename it to letters, digits, _ and - only, or leave it out",
        )
    if table.schema.lower() == CONTROL_DIRECTORY:
        reason = f"the lake's directory {CONTROL_DIRECTORY} is reserved for wal2lake"
    elif table.name.lower() == _OF_DELTA or table.schema.lower() == _OF_DELTA:
        reason = f"a directory {_OF_DELTA} is reserved for Delta"
    else:
        return None
    return RefusedName(table=table, reason=reason, remedy="rename it, or leave it out")


def table_collisions(tables: Sequence[TableId]) -> Iterator[RefusedName]:
    """Yield a refusal for each table whose topic has the name of an earlier table's topic."""
    topics: dict[str, TableId] = {}
    remedy = "rename one of them, or leave one out"
    for table in tables:
        if table_refusal(table) is not None:
            continue
        topic = _as_kafka_compares(table)
        if (other := topics.setdefault(topic, table)) != table:
            reason = f"Kafka confuses its topic with that of {other}: it treats . and _ alike"
            yield RefusedName(table=table, reason=reason, remedy=remedy)


def case_twins(tables: Sequence[TableId]) -> Iterator[tuple[TableId, TableId]]:
    """Yield (earlier, later) for each table whose name differs from an earlier one only by case."""
    seen: dict[str, TableId] = {}
    for table in tables:
        if (other := seen.setdefault(without_case(str(table)), table)) is not table:
            yield other, table


def _as_kafka_compares(table: TableId) -> str:
    return str(table).replace(".", "_")


def readable_schema(schema_json: str) -> str:
    """Return the connector's Avro schema with names that every Avro reader accepts.

    The connector keeps a digit at the start of a table's name in the schema's name, which Avro
    forbids. Names are not part of the encoding, so the bytes stay readable.
    """
    try:
        schema = json.loads(schema_json)
    except ValueError:
        return schema_json
    readable = _readable(schema)
    return schema_json if readable == schema else json.dumps(readable)


def _readable(schema: Any) -> Any:  # noqa: ANN401 - Avro is JSON
    if isinstance(schema, str):
        return _readable_name(schema)
    if isinstance(schema, list):
        return [_readable(branch) for branch in schema]
    if not isinstance(schema, Mapping):
        return schema
    return {key: _readable_value(key, value) for key, value in schema.items()}


def _readable_value(key: str, value: Any) -> Any:  # noqa: ANN401
    if key in _NAMES and isinstance(value, str):
        return _readable_name(value)
    if key in _TYPES:
        return _readable(value)
    if key == "fields" and isinstance(value, list):
        return [_readable(field) for field in value]
    return value


def _readable_name(name: str) -> str:
    """Prefix an underscore to each part of a dotted name that begins with a digit."""
    return ".".join(f"_{part}" if part[:1].isdigit() else part for part in name.split("."))
