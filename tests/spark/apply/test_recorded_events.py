"""Spark decodes a connector's bytes like the independent decoder, and to Postgres's values."""

from collections.abc import Iterable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.avro.functions import from_avro

from cdc.apply.changes.changed_keys import resolve
from cdc.apply.changes.decode import decode_envelope, decode_markers, decode_table
from cdc.apply.changes.reduce import after_truncate, latest_per_key, overview
from cdc.events.schema import TableSchema, refused_columns, row_fields, table_schema_from_avro
from cdc.events.transactions import marker
from cdc.events.values.lake_types import lake_type
from cdc.lake.table.merge_plan import DELETED, KEEP, OFFSET, REASON
from cdc.tables import TableId, TableMode
from tests.events.recorded import LOG_COLUMNS, PREFIX, Message, Recording, recording, table_topic
from tests.local_spark import frame_of

pytestmark = pytest.mark.spark

KEYS = {
    "customers": ("id",),
    "orders": ("id",),
    "full_identity": ("id",),
    "odd": ("A b",),
    "composite_key": ("a", "b"),
    "identity_index": ("a",),
}
TRANSACTIONS = f"{PREFIX}.transaction"


def frame(spark: SparkSession, messages: Iterable[Message]) -> DataFrame:
    return frame_of(spark, [message.row() for message in messages], LOG_COLUMNS)


def schema_of(recorded: Recording, table: str, key: tuple[str, ...]) -> TableSchema:
    written = recorded.written(table_topic(table))
    return table_schema_from_avro(
        written[max(written)], table=TableId("public", table), key=key, mode=TableMode.KEYED
    )


def changes(spark: SparkSession, recorded: Recording, schema: TableSchema) -> DataFrame:
    topic = table_topic(schema.table.name)
    rows = frame(spark, recorded.of(topic))
    return decode_table(rows, recorded.written(topic), schema, placeholder=recorded.placeholder)


def text(value: Any) -> str | None:  # noqa: ANN401 - any value of the lake
    """Return the text that Postgres writes (in UTC, bytea as hex), without our own code."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return "\\x" + value.hex()
    if isinstance(value, datetime):
        stamp = value.strftime("%Y-%m-%d %H:%M:%S.%f").rstrip("0").rstrip(".")
        return stamp + ("+00" if value.tzinfo else "")
    if isinstance(value, float):
        special = {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}
        return special.get(repr(value), repr(value).removesuffix(".0"))
    return str(value) if isinstance(value, int | Decimal | date) else array(value)


def array(values: list[Any]) -> str:
    return "{" + ",".join(map(element, values)) + "}"


def element(value: Any) -> str:  # noqa: ANN401
    plain = ("t" if value else "f") if isinstance(value, bool) else text(value)
    if plain is None:
        return "NULL"
    if plain and not set(plain) & set(' ,"{}\\') and plain.lower() != "null":
        return plain
    escaped = plain.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def texts(rows: DataFrame, schema: TableSchema) -> list[dict[str, str | None]]:
    names = list(schema.names)
    single = {column.name for column in schema.columns if "float" in column.type}
    current = rows.where(f"NOT {DELETED} AND {REASON} IS NULL").toArrow().to_pylist()
    return [
        {name: shortest(row[name]) if name in single else text(row[name]) for name in names}
        for row in current
    ]


def shortest(value: Any) -> str | None:  # noqa: ANN401
    """Return the text of a single-precision number, which is read as a double with more digits."""
    if isinstance(value, list):
        return "{" + ",".join("NULL" if v is None else str(shortest(v)) for v in value) + "}"
    return text(value if value is None else float(f"{value:.7g}"))


def sorted_rows(rows: Iterable[dict[str, str | None]]) -> list[list[tuple[str, str | None]]]:
    return sorted((sorted(row.items()) for row in rows), key=repr)


@pytest.mark.parametrize("name", ["tables", "types"])
def test_from_avro_reads_what_fastavro_reads(spark: SparkSession, name: str) -> None:
    recorded = recording(name)
    compared = 0
    for schema_id, schema in recorded.schemas.items():
        messages = [m for m in recorded.messages if m.row()[-1] == schema_id]
        if not messages:
            continue
        body = from_avro(F.expr("substring(value, 6)"), schema, {"mode": "FAILFAST"})
        decoded = frame(spark, messages).orderBy("topic", "offset").select(body.alias("v"))
        ours = [_plain(row["v"].asDict(recursive=True)) for row in decoded.collect()]
        theirs = [
            recorded.decoded(m.value) for m in sorted(messages, key=lambda m: (m.topic, m.offset))
        ]
        assert repr(ours) == repr([_ordered(t, o) for t, o in zip(theirs, ours, strict=True)])
        compared += len(ours)
    assert compared == sum(m.value is not None for m in recorded.messages)


def _plain(value: Any) -> Any:  # noqa: ANN401
    """Return the value with each bytearray as bytes, at any depth."""
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return bytes(value) if isinstance(value, bytearray) else value


def _ordered(record: Any, like: Any) -> Any:  # noqa: ANN401
    """Return the record with its fields in the other's order.

    Then the two can be compared as text, which finds NaN equal to NaN.
    """
    if isinstance(record, dict) and isinstance(like, dict):
        assert record.keys() == like.keys()
        return {name: _ordered(record[name], like[name]) for name in like}
    if isinstance(record, list) and isinstance(like, list):
        return [_ordered(r, o) for r, o in zip(record, like, strict=True)]
    return record


@pytest.mark.parametrize("table", KEYS)
@pytest.mark.parametrize("carry", [False, True])
def test_the_last_row_of_each_key_equals_postgres(
    spark: SparkSession,
    table: str,
    carry: bool,
) -> None:
    recorded = recording("tables")
    schema = schema_of(recorded, table, KEYS[table])
    decoded = changes(spark, recorded, schema)
    facts = overview(decoded).collect()[0]
    if facts["last_truncate"] is not None:
        decoded = after_truncate(decoded, facts["last_truncate"])

    latest = latest_per_key(decoded, schema, carry=carry)

    assert facts["refused"] == 0
    assert sorted_rows(texts(latest, schema)) == sorted_rows(recorded.expected[table])


def test_unchanged_values_are_taken_from_the_batch_even_if_the_key_changed(
    spark: SparkSession,
) -> None:
    recorded = recording("tables")
    schema = schema_of(recorded, "toasty", ("id",))
    decoded = changes(spark, recorded, schema)
    before_the_key_changed = decoded.where(f"{OFFSET} < 4")

    [row] = latest_per_key(before_the_key_changed, schema, carry=True).toArrow().to_pylist()

    events = {event.offset: event for event in recorded.events(table_topic("toasty"))}
    first, last = events[0].after or {}, events[3].after or {}
    assert row["n"], row["big"] == (last["n"], last["big"])
    for name in ("bigb", "bigj", "biga", "bigia", "bigh"):
        assert row[name] == first[name]
    [waiting] = decoded.where(f"{KEEP} IS NOT NULL AND _cdc_op = 'c'").select(OFFSET).collect()
    assert waiting[OFFSET] == 6
    whole = resolve(decoded, decoded.limit(0), schema).where(f"{OFFSET} = 6")
    [moved] = whole.toArrow().to_pylist()
    assert (moved[REASON], moved[KEEP], moved["big"]) == (None, None, last["big"])
    for name in ("bigb", "bigj", "biga", "bigia", "bigh"):
        assert moved[name] == first[name]


def test_every_type_is_exact_or_refused(spark: SparkSession) -> None:
    """Each recorded value has Postgres's text; only rows that the lake cannot hold are refused."""
    recorded = recording("types")
    schema = schema_of(recorded, "every_type", ("id",))
    newest = recorded.written(table_topic("every_type"))
    fields = {field.column.name: field for field in row_fields(newest[max(newest)])}
    exact = [name for name in schema.names if lake_type(fields[name].pg).exact]
    decoded = changes(spark, recorded, schema)
    latest = latest_per_key(decoded, schema, carry=False)
    ours = {row["id"]: row for row in texts(latest, schema)}
    theirs = {row["id"]: row for row in recorded.expected["every_type"]}

    assert set(ours) == {"1", "11", "14"}
    for number, row in ours.items():
        for name in exact:
            padded = fields[name].pg.name == "bpchar"  # its cast to text drops the padding
            value = (row[name] or "").rstrip() or None if padded else row[name]
            assert (name, value) == (name, theirs[number][name])
    refused = decoded.where(f"{REASON} IS NOT NULL").select("id", REASON).collect()
    assert {row["id"] for row in refused} == {2, 3, 12, 13}  # BC, infinite
    assert not set(dict(refused_columns(newest[max(newest)]))) & set(schema.names)


def test_markers_equal_those_of_the_independent_decoder(spark: SparkSession) -> None:
    recorded = recording("tables")
    messages = recorded.of(TRANSACTIONS)

    decoded = decode_markers(frame(spark, messages), recorded.schemas).orderBy("offset").collect()

    ours = [(row["offset"], marker(row.asDict(recursive=True), prefix=PREFIX)) for row in decoded]
    theirs = [(m.offset, marker(recorded.decoded(m.value) or {}, prefix=PREFIX)) for m in messages]
    assert ours == theirs


def test_envelopes_equal_those_of_the_independent_decoder(spark: SparkSession) -> None:
    recorded = recording("tables")
    topics = {m.topic for m in recorded.messages if m.topic.count(".") == 2}
    messages = [m for m in recorded.messages if m.topic in topics]

    decoded = decode_envelope(frame(spark, messages), recorded.schemas)

    rows = decoded.where("op IS NOT NULL").collect()
    ours = {tuple(row) for row in rows}
    theirs = {
        (
            event.topic,
            event.offset,
            event.op.value,
            event.txid,
            event.lsn,
            event.schema,
            event.table,
        )
        for topic in topics
        for event in recorded.events(topic)
    }
    assert ours == theirs
    assert len(rows) == len(theirs)


def test_without_a_known_schema_no_envelope_or_marker_is_decoded(spark: SparkSession) -> None:
    recorded = recording("tables")
    rows = frame(spark, recorded.messages)

    assert decode_envelope(rows, {}).where("op IS NOT NULL OR txid IS NOT NULL").isEmpty()
    assert decode_markers(rows, {}).where("status IS NOT NULL").isEmpty()
