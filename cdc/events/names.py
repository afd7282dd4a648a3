"""Names that cannot be kept, of tables and of columns, and why.

Asked before a table is taken in (cdc/source/catalog/catalog.py), and again when its structure
changes (cdc/events/structure/steps.py). All other names of Postgres are kept as they are.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cdc.tables import TableId

OURS: Final = "_cdc_"
CONTROL_DIRECTORY: Final = "_wal2lake"
"""Beside the directories of the schemas, in the lake."""
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
"""Columns that Spark and Delta put beside a table's own, whatever these are called: where two have
one name, a MERGE fails, or an UPDATE writes NULL. tests/spark/lake/test_names.py tries them."""
_PLAIN: Final = re.compile(r"[A-Za-z0-9_-]+")
_NOT_AVRO: Final = re.compile(r"[^A-Za-z0-9_]")
_NAMES: Final = frozenset({"name", "namespace"})
_TYPES: Final = frozenset({"type", "items", "values"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why a name cannot be kept, in words, and the table that bears it."""

    table: TableId
    reason: str
    remedy: str


def avro_name(name: str) -> str:
    """What the connector calls a column or a part of a schema's name, in Avro.

    It goes by units of UTF-16, so that a sign beyond the first 65,536 becomes two.
    """
    units = name.encode("utf-16-be", "surrogatepass")
    pairs = zip(units[::2], units[1::2], strict=True)
    spelled = _NOT_AVRO.sub("_", "".join(chr(high << 8 | low) for high, low in pairs))
    return f"_{spelled}" if spelled[:1].isdigit() else spelled


def without_case(name: str) -> str:
    """What two names have in common that Spark takes for one: sign by sign, as Java compares."""
    return "".join(map(_without_case, name))


def _without_case(sign: str) -> str:
    upper = sign.upper()
    return (upper if len(upper) == 1 else sign).lower()[:1]


def column_refusals(table: TableId, names: Sequence[str]) -> Iterator[Refusal]:
    """Of the columns that are to be in the lake's table."""
    in_avro: dict[str, str] = {}
    in_lake: dict[str, str] = {}
    for name in names:
        first = in_avro.setdefault(avro_name(name).lower(), name)
        other = in_lake.setdefault(without_case(name), name) if first == name else first
        if other != name:
            reason = f"columns {other} and {name} have one name in Avro or in the lake"
            yield Refusal(table=table, reason=reason, remedy="rename one of them")
        if reason := _of_others(name):
            yield Refusal(table=table, reason=f"column {name}: {reason}", remedy="rename it")


def _of_others(name: str) -> str:
    if name.lower().startswith(OURS):
        return f"names that begin with {OURS} are ours"
    if name.lower() in OF_ENGINES:
        return "Spark and Delta call a column of their own so"
    return ""


def table_refusal(table: TableId) -> Refusal | None:
    """Of one table, whatever others there are."""
    if not (_PLAIN.fullmatch(table.schema) and _PLAIN.fullmatch(table.name)):
        return Refusal(
            table=table,
            reason="has a name that cannot be a topic's",
            remedy="only letters, digits, _ and - are possible: rename it, or leave it out",
        )
    if table.schema.lower() == CONTROL_DIRECTORY:
        reason = f"the directory {CONTROL_DIRECTORY} of the lake is ours"
    elif table.name.lower() == _OF_DELTA or table.schema.lower() == _OF_DELTA:
        reason = f"a directory {_OF_DELTA} is a part of Delta's"
    else:
        return None
    return Refusal(table=table, reason=reason, remedy="rename it, or leave it out")


def table_collisions(tables: Sequence[TableId]) -> Iterator[Refusal]:
    """Of tables that cannot be kept beside one that stands before them."""
    topics: dict[str, TableId] = {}
    remedy = "rename one of them, or leave one out"
    for table in tables:
        if table_refusal(table) is not None:
            continue
        topic = _as_kafka_compares(table)
        if (other := topics.setdefault(topic, table)) != table:
            reason = f"Kafka takes its topic for that of {other}: to it . and _ are the same"
            yield Refusal(table=table, reason=reason, remedy=remedy)


def case_twins(tables: Sequence[TableId]) -> Iterator[tuple[TableId, TableId]]:
    """Of each table that differs only by case from one that stands before it: that one, and it."""
    seen: dict[str, TableId] = {}
    for table in tables:
        if (other := seen.setdefault(without_case(str(table)), table)) is not table:
            yield other, table


def _as_kafka_compares(table: TableId) -> str:
    return str(table).replace(".", "_")


def readable_schema(schema_json: str) -> str:
    """An Avro schema with names that every reader takes, from one the connector has written.

    In the name of a schema it leaves a digit at the beginning of a table's name, which is no name
    in Avro. Names are no part of what is encoded.
    """
    try:
        schema = json.loads(schema_json)
    except ValueError:
        return schema_json
    made = _readable(schema)
    return schema_json if made == schema else json.dumps(made)


def _readable(schema: Any) -> Any:  # noqa: ANN401 - Avro is JSON
    if isinstance(schema, str):
        return _readable_name(schema)
    if isinstance(schema, list):
        return [_readable(one) for one in schema]
    if not isinstance(schema, Mapping):
        return schema
    return {key: _of_key(key, value) for key, value in schema.items()}


def _of_key(key: str, value: Any) -> Any:  # noqa: ANN401
    if key in _NAMES and isinstance(value, str):
        return _readable_name(value)
    if key in _TYPES:
        return _readable(value)
    if key == "fields" and isinstance(value, list):
        return [_readable(field) for field in value]
    return value


def _readable_name(name: str) -> str:
    """Of all names that have a digit where none may be, and of no other."""
    return ".".join(f"_{part}" if part[:1].isdigit() else part for part in name.split("."))
