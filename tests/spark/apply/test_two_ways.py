"""Events decoded and applied by Spark and without it: the same values, refusals and counters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from cdc.apply.changes.decode import decode_table
from cdc.apply.local.arrow import log_events, table_of
from cdc.apply.local.decode import TableDecoder
from cdc.apply.table.apply_context import ApplyContext
from cdc.apply.table.batch import Batch
from cdc.config import Job
from cdc.events.schema import (
    RowField,
    TableSchema,
    row_fields,
    table_schema_from_avro,
    text_column,
)
from cdc.events.values.sql_text import spark_name
from cdc.lake.create.table import create
from cdc.lake.records.quarantine import Quarantine
from cdc.lake.table.merge_plan import DELETED, KEEP, OFFSET, OP, REASON, stored_columns
from cdc.lake.table.positions import Position
from cdc.tables import TableId, TableMode
from tests.events import two_ways
from tests.events.damaged import MARK, keyed_messages, keyless_messages
from tests.events.local_lake import LocalLake, log_table
from tests.events.recorded import LOG_COLUMNS, Message, recording, table_topic
from tests.events.source import SCHEMA_ID
from tests.local_spark import frame_of

pytestmark = pytest.mark.spark

KEYS = {
    "customers": ("id",),
    "orders": ("id",),
    "full_identity": ("id",),
    "odd": ("A b",),
    "composite_key": ("a", "b"),
    "identity_index": ("a",),
    "toasty": ("id",),
    "every_type": ("id",),
    "no_key": (),
}
OF_TEXTS, OF_WIDER = 3, 4
"""Numbers of two ``variants``: with columns as text, and with wider columns."""
EXACT = {"b", "bt", "bt1", "bya", "dom", "f4", "f8", "i4", "i8", "id", "o", "oid_int"}
"""Columns of which every value has an exact form in the lake."""
TEXTS = {"n_neg"}
"""Columns of which every value has an exact form as text."""
UNFIT = {number: {"d", "ia"} if number == OF_WIDER else set() for number in range(5)}
"""Columns whose type in the variant holds no value of theirs."""


@dataclass(frozen=True, kw_only=True)
class Given:
    """Holds what both ways decode."""

    messages: Sequence[Message]
    schemas: Mapping[int, str]
    schema: TableSchema
    placeholder: str
    keys: Mapping[int, str] = field(default_factory=dict)


def by_spark(spark: SparkSession, given: Given) -> pa.Table:
    """Return the changes; nothing but the reason of refused ones, as values may be no text."""
    rows = frame_of(spark, [m.row() for m in given.messages], LOG_COLUMNS)
    decoded = decode_table(
        rows,
        given.schemas,
        given.schema,
        placeholder=given.placeholder,
        key_schemas=given.keys,
    )
    names = map(spark_name, given.schema.names)
    good = [f"IF({REASON} IS NULL, {n}, NULL) AS {n}" for n in (*names, OP, KEEP)]
    kept = decoded.selectExpr(*good, OFFSET, DELETED, REASON)
    # The two halves of an update of a multiset have one offset.
    return kept.toArrow().sort_by([(OFFSET, "ascending"), (DELETED, "descending")])


def without_spark(given: Given) -> pa.Table:
    """Return the changes in the columns of the other way."""
    schema = given.schema
    decoder = TableDecoder(
        given.schemas, schema, placeholder=given.placeholder, key_schemas=given.keys
    )
    changes = decoder.decode(log_events(log_table(given.messages)))
    own = {
        OP: [None if change.reason else change.op for change in changes],
        KEEP: [None if change.reason else list(change.keep) or None for change in changes],
        OFFSET: [change.offset for change in changes],
        DELETED: [change.op == "d" for change in changes],
        REASON: [change.reason for change in changes],
    }
    nothing = [None] * len(schema.columns)
    rows = [nothing if change.reason else change.values for change in changes]
    return table_of(schema, rows, {name: pa.array(values) for name, values in own.items()})


def differences(spark: pa.Table, local: pa.Table, schema: TableSchema) -> list[Any]:
    """Return offset, column and both values wherever they differ, and the refusals that do."""
    assert spark.column_names == local.column_names
    kinds = [
        (name, spark.schema.field(name).type, local.schema.field(name).type)
        for name in schema.names
        if spark.schema.field(name).type != local.schema.field(name).type
        and "list" not in str(local.schema.field(name).type)
    ]
    assert kinds == []
    found: list[Any] = []
    for one, other in zip(spark.to_pylist(), local.to_pylist(), strict=True):
        found += [
            (one[OFFSET], name, one[name], other[name])
            for name in spark.column_names
            if repr(one[name]) != repr(other[name])
        ]
    return found


def variants(written: Mapping[int, str], table: TableId) -> list[TableSchema]:
    """Return the lake's table in each mode, with columns as text, and with wider columns."""
    newest = written[max(written)]
    key = KEYS[table.name]
    fields = {field.column.name: field for field in row_fields(newest)}
    modes = [TableMode.KEYED] if key else []
    schemas = [
        table_schema_from_avro(
            newest, table=table, key=key if mode is TableMode.KEYED else (), mode=mode
        )
        for mode in (*modes, TableMode.MULTISET, TableMode.APPEND)
    ]
    first = schemas[0]
    texts = tuple(text_column(c, fields[c.name].pg) for c in first.columns)
    wide = tuple(
        c if c.name in key else replace(c, type=_wider(fields[c.name])) for c in first.columns
    )
    return [*schemas, replace(first, columns=texts), replace(first, columns=wide)]


def _wider(field: RowField) -> str:
    """A type that holds the column's values; for some of them, one that does not."""
    wider = {"smallint": "bigint", "int": "bigint", "float": "double", "date": "int"}
    wider |= {"array<int>": "array<bigint>", "decimal(10,2)": "decimal(38,4)"}
    return wider.get(field.column.type, field.column.type)


@pytest.mark.parametrize("table", KEYS)
def test_every_recorded_event(spark: SparkSession, table: str) -> None:
    recorded = recording("types" if table == "every_type" else "tables")
    topic = table_topic(table)
    messages, written = recorded.of(topic), recorded.written(topic)
    assert messages
    for schema in variants(written, TableId("public", table))[:2]:
        given = Given(
            messages=messages,
            schemas=written,
            schema=schema,
            placeholder=recorded.placeholder,
            keys=recorded.schemas,
        )
        assert differences(by_spark(spark, given), without_spark(given), schema) == []


@pytest.mark.parametrize("variant", range(5))
def test_every_edge_value_of_every_type(spark: SparkSession, variant: int) -> None:
    writer = {two_ways.WRITER: two_ways.EVERY_TYPE}
    schema = variants(writer, two_ways.TABLE)[variant]
    rows = [
        *two_ways.one_by_one(two_ways.EVERY_TYPE, MARK),
        *two_ways.at_random(two_ways.EVERY_TYPE, MARK, Random(variant), 1500),
    ]
    op = "u" if schema.mode is TableMode.KEYED else "c"
    messages = two_ways.messages(two_ways.EVERY_TYPE, iter(rows), op)

    given = Given(messages=messages, schemas=writer, schema=schema, placeholder=MARK)
    spark_way, local_way = by_spark(spark, given), without_spark(given)

    assert differences(spark_way, local_way, schema) == []
    kept = {name for name in schema.names if spark_way[name].null_count < len(messages)}
    assert kept == set(schema.names) - UNFIT[variant]
    reasons = spark_way[REASON].drop_null().to_pylist()
    refused = {reason.split()[1] for reason in reasons if reason.startswith("column ")}
    assert refused == set(schema.names) - EXACT - (TEXTS if variant == OF_TEXTS else set())


def table_schema(number: int, table: str, mode: TableMode) -> TableSchema:
    key = KEYS[table] if mode is TableMode.KEYED else ()
    text = recording("tables").schemas[number]
    return table_schema_from_avro(text, table=TableId("public", table), key=key, mode=mode)


@pytest.mark.parametrize(
    "mode", [TableMode.KEYED, TableMode.MULTISET, TableMode.APPEND], ids=lambda mode: mode.value
)
def test_batches_of_damaged_events(spark: SparkSession, tmp_path: Path, mode: TableMode) -> None:
    """Also batches that end between the halves of a changed key; after each, all is the same."""
    random = Random(28)
    number, name = (SCHEMA_ID, "toasty") if mode is TableMode.KEYED else (131, "no_key")
    messages = keyed_messages(random) if mode is TableMode.KEYED else keyless_messages(random)
    schemas = {number: recording("tables").schemas[number]}
    schema = table_schema(number, name, mode)
    path, policy = str(tmp_path / "t"), Job(quarantine_limit_run=10_000)
    quarantine = Quarantine(str(tmp_path / "q"))
    context = ApplyContext(quarantine=quarantine, placeholder=MARK, policy=policy)
    at = Position(epoch=1, offset=-1)
    create(spark, path, schema, at)
    lake = LocalLake(schema=schema, decoder=TableDecoder(schemas, schema, placeholder=MARK))
    lake.policy = policy
    places = sorted({0, *random.choices(range(len(messages)), k=5), len(messages)})

    for first, end in pairwise(places):
        part = messages[first:end]
        rows = frame_of(spark, [(*m.row(), 0) for m in part], f"{LOG_COLUMNS}, partition int")
        batch = Batch(session=spark, path=path, schema=schema, position=at, context=context)
        at = batch.commit(rows, part[-1].offset, schemas)
        lake.apply(part)

        assert lake.position == replace(at, refused=0)
        kept = {event.offset: event.reason for event in quarantine.rows()}
        assert lake.refused == kept
        assert stored(spark, path, schema) == sorted(map(repr, lake.stored()))


def stored(spark: SparkSession, path: str, schema: TableSchema) -> list[str]:
    """Return the rows of the lake with our own columns, as texts."""
    frame = spark.read.format("delta").load(path).select(*stored_columns(schema))
    return sorted(repr(tuple(row.values())) for row in frame.toArrow().to_pylist())
