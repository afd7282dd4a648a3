"""A message is refused with a reason if it is no event of its table or the lake cannot hold it."""

import io
import json
from collections.abc import Mapping
from random import Random
from typing import Any

import fastavro
import pytest
from pyspark.sql import DataFrame, SparkSession

from cdc.apply.changes.decode import decode_envelope, decode_markers, decode_table
from cdc.apply.changes.reasons import (
    NO_FRAME,
    NO_KEY,
    NO_ROW,
    NOT_AN_EVENT,
    NOT_APPENDED,
    UNKNOWN_SCHEMA,
    WRONG_TABLE,
)
from cdc.events import avro
from cdc.events.envelope import change_event
from cdc.events.schema import Column, TableSchema, table_schema_from_avro
from cdc.lake.table.merge_plan import DELETED, OFFSET, OP, REASON
from cdc.tables import TableId, TableMode
from tests.events.recorded import LOG_COLUMNS, PREFIX, Message, recording, table_topic
from tests.events.source import envelope
from tests.local_spark import frame_of

pytestmark = pytest.mark.spark

RECORDED = recording("tables")
CUSTOMERS = TableId("public", "customers")
TOPIC = table_topic("customers")
WRITER, KEY_WRITER, ORDERS_WRITER, MARKERS = 123, 122, 125, 10
SCHEMA = table_schema_from_avro(
    RECORDED.schemas[WRITER], table=CUSTOMERS, key=("id",), mode=TableMode.KEYED
)
GOOD = next(m for m in RECORDED.of(TOPIC) if m.value)
ROW = {
    "id": 1,
    "name": "Ada",
    "balance": "1.00",
    "born": None,
    "seen": None,
    "created": 0,
    "tags": None,
}


def message(offset: int, value: bytes | None, key: bytes | None = None) -> Message:
    return Message(topic=TOPIC, offset=offset, key=key, value=value)


def written(op: str, *, before: Any = None, after: Any = None) -> bytes:  # noqa: ANN401
    value = envelope(CUSTOMERS, op, before=before, after=after)
    return avro.encode(RECORDED.schemas[WRITER], WRITER, value)


def decoded(
    spark: SparkSession,
    *messages: Message,
    schema: TableSchema = SCHEMA,
    schemas: Mapping[int, str] = RECORDED.schemas,
) -> DataFrame:
    rows = frame_of(spark, [m.row() for m in messages], LOG_COLUMNS)
    keys = {KEY_WRITER: RECORDED.schemas[KEY_WRITER]}
    return decode_table(rows, schemas, schema, placeholder="no-value", key_schemas=keys)


def reasons(frame: DataFrame) -> dict[int, str | None]:
    return {row[OFFSET]: row[REASON] for row in frame.select(OFFSET, REASON).collect()}


def test_a_message_that_is_no_event_is_refused_with_its_reason(spark: SparkSession) -> None:
    assert GOOD.value is not None
    order = next(m for m in RECORDED.of(table_topic("orders")) if m.value)
    marker = RECORDED.of(f"{PREFIX}.transaction")[0]
    found = decoded(
        spark,
        message(0, GOOD.value),
        message(1, b"garbage"),
        message(2, b""),
        message(3, b"\0\0\0\x03\xe7" + GOOD.value[5:]),
        message(4, GOOD.value[:5]),
        message(5, order.value),
        message(6, marker.value),
        message(7, None),
        message(8, b"\0" + (WRITER).to_bytes(4) + b"\xff" * 30),
    )

    assert reasons(found) == {
        0: None,
        1: NO_FRAME,
        2: NO_FRAME,
        3: UNKNOWN_SCHEMA,
        4: NO_FRAME,  # landing takes a schema id without a body for none
        5: WRONG_TABLE,
        6: NOT_AN_EVENT,
        8: NOT_AN_EVENT,
    }


def test_without_any_schema_every_message_is_refused(spark: SparkSession) -> None:
    found = decoded(spark, message(0, GOOD.value), message(1, b"x"), schemas={})

    assert reasons(found) == {0: UNKNOWN_SCHEMA, 1: NO_FRAME}


def test_an_event_without_its_row_or_key_is_refused(spark: SparkSession) -> None:
    found = decoded(
        spark,
        message(0, written("c")),
        message(1, written("u", before=ROW)),
        message(2, written("d")),
        message(3, written("x", after=ROW)),
        message(4, written("t")),
    )

    assert reasons(found) == {0: NO_ROW, 1: NO_ROW, 2: NO_KEY, 3: NOT_AN_EVENT, 4: None}


def test_a_delete_without_a_row_before_takes_its_key_from_the_record(spark: SparkSession) -> None:
    key = avro.encode(RECORDED.schemas[KEY_WRITER], KEY_WRITER, {"key": {"id": 77}})

    [row] = decoded(spark, message(0, written("d"), key)).collect()

    assert (row["id"], row[DELETED], row[REASON]) == (77, True, None)


LIMITS = {
    "balance": "NaN, infinity, or too many digits",
    **dict.fromkeys(("born", "created", "seen"), "infinity, or a year outside 1 to 9999"),
}


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("balance", "NAN"),
        ("balance", "123456789012.00"),
        ("balance", "secret"),
        ("born", 2_932_897),
        ("born", -719_163),
        ("created", 9223372036854775807),
        ("seen", "infinity"),
        ("seen", "-4712-01-01T00:00:00Z"),
        ("seen", "+10000-01-01T00:00:00Z"),
    ],
)
def test_a_value_that_the_lake_cannot_hold_is_refused_with_the_limit(
    spark: SparkSession, column: str, value: str | int
) -> None:
    found = reasons(decoded(spark, message(0, written("c", after={**ROW, column: value}))))

    assert found[0] is not None
    subject, _, limit = found[0].partition(" cannot represent: ")
    assert subject.startswith(f"column {column} ")
    assert str(value) not in subject
    assert limit == LIMITS[column]  # the same for every value of the column


@pytest.mark.parametrize(
    ("column", "value", "text"),
    [
        ("born", 2_932_896, "9999-12-31"),
        ("born", -719_162, "0001-01-01"),
        ("seen", "9999-12-31T23:59:59.999999Z", "9999-12-31 23:59:59.999999"),
        ("seen", "0001-01-01T00:00:00Z", "0001-01-01 00:00:00"),
        ("created", 253_402_300_799_999_999, "9999-12-31 23:59:59.999999"),
        ("created", -1, "1969-12-31 23:59:59.999999"),
    ],
)
def test_the_smallest_and_largest_values_that_fit_are_kept(
    spark: SparkSession, column: str, value: str | int, text: str
) -> None:
    found = decoded(spark, message(0, written("c", after={**ROW, column: value})))

    [row] = found.selectExpr(REASON, f"CAST({column} AS string) AS text").collect()
    assert (row[REASON], row["text"]) == (None, text)


def test_an_append_only_table_refuses_everything_but_inserts(spark: SparkSession) -> None:
    schema = TableSchema(table=CUSTOMERS, columns=SCHEMA.columns, key=(), mode=TableMode.APPEND)
    found = decoded(
        spark,
        message(0, written("r", after=ROW)),
        message(1, written("c", after=ROW)),
        message(2, written("u", before=ROW, after=ROW)),
        message(3, written("d", before=ROW)),
        message(4, written("t")),
        schema=schema,
    )

    assert reasons(found) == {0: None, 1: None, **dict.fromkeys((2, 3, 4), NOT_APPENDED)}


def test_events_of_an_older_and_a_newer_schema_fit_one_table(spark: SparkSession) -> None:
    """A column unknown to the writer is null; a value is widened to the lake's type."""
    topic = table_topic("full_identity")
    schemas = RECORDED.written(topic)
    columns = (
        Column("id", "bigint"),
        Column("v", "string"),
        Column("w", "decimal(20,4)"),
        Column("extra", "bigint"),
        Column("gone", "string"),
    )
    schema = TableSchema(table=TableId("public", "full_identity"), columns=columns, key=("id",))
    rows = frame_of(spark, [m.row() for m in RECORDED.of(topic)], LOG_COLUMNS)

    found = decode_table(rows, schemas, schema, placeholder=RECORDED.placeholder)

    assert len(schemas) == 2
    values = found.where(f"{OP} <> 'd'").orderBy(OFFSET)
    text = values.selectExpr("id", "v", "CAST(w AS string)", "extra", "gone", REASON).collect()
    assert [tuple(row) for row in text] == [
        (1, "one", "1.5000", None, None, None),
        (2, "two", "1.5000", None, None, None),
        (2, "zwei", "1.5000", None, None, None),
        (3, "zwei", "1.5000", None, None, None),
        (10, "ten", "2.2500", 77, None, None),
    ]


def test_a_column_that_changed_its_type_is_refused_if_it_has_a_value(
    spark: SparkSession,
) -> None:
    columns = (Column("id", "bigint"), Column("name", "string"), Column("born", "int"))
    schema = TableSchema(table=CUSTOMERS, columns=columns, key=("id",))
    found = decoded(
        spark,
        message(0, written("c", after=ROW)),
        message(1, written("c", after={**ROW, "born": 1})),
        schema=schema,
    )

    assert reasons(found) == {0: None, 1: "column born holds a value that int cannot represent"}


def corrupted(value: bytes, random: Random) -> list[bytes]:
    """Return the message cut off at each byte, with a byte changed, and with extra bytes."""
    changed = [
        value[:at] + bytes([random.randrange(256)]) + value[at + 1 :] for at in range(5, len(value))
    ]
    noise = [value[:5] + random.randbytes(random.randrange(60)) for _ in range(50)]
    longer = [value + random.randbytes(3)]
    return [value[:at] for at in range(len(value))] + changed + noise + longer


def test_corrupt_messages_neither_stop_the_batch_nor_pass_as_others(
    spark: SparkSession,
) -> None:
    """Each is refused, or the independent decoder also finds an event of the table."""
    random = Random(1)
    topics = [m for m in RECORDED.of(TOPIC) if m.value is not None]
    messages = [
        message(offset, value)
        for offset, value in enumerate(
            bad for m in topics[:4] for bad in corrupted(m.value or b"", random)
        )
    ]

    rows = decoded(spark, *messages).select(OFFSET, OP, REASON).collect()

    assert len(rows) == len(messages)
    accepted = {row[OFFSET]: row[OP] for row in rows if row[REASON] is None}
    assert len(accepted) < len(messages) / 2
    for offset, op in accepted.items():
        assert plausible(messages[offset].value or b"") == op
    places = frame_of(spark, [m.row() for m in messages], LOG_COLUMNS)
    assert decode_envelope(places, RECORDED.schemas).where("op IS NOT NULL").count() >= len(
        accepted
    )


def plausible(value: bytes) -> str | None:
    """Return the operation if this is an event of the table, else None; fail for an invalid text.

    Extra bytes at the end are allowed, and texts outside the row are not checked.
    """
    schema = fastavro.parse_schema(json.loads(RECORDED.schemas[WRITER]))
    record = fastavro.schemaless_reader(
        io.BytesIO(value[5:]), schema, None, handle_unicode_errors="replace"
    )
    assert isinstance(record, dict)
    event = change_event(TOPIC, 0, record)
    assert "\ufffd" not in str(event.image)
    return event.op.value if (event.schema, event.table) == ("public", "customers") else None


def test_a_truncated_marker_is_no_marker(spark: SparkSession) -> None:
    random = Random(2)
    good = RECORDED.of(f"{PREFIX}.transaction")[1]
    assert good.value is not None
    messages = [
        Message(topic=good.topic, offset=at, key=None, value=value)
        for at, value in enumerate([good.value, *corrupted(good.value, random)])
    ]
    rows = frame_of(spark, [m.row() for m in messages], LOG_COLUMNS)

    found = decode_markers(rows, {MARKERS: RECORDED.schemas[MARKERS]})

    status = {row["offset"]: row["status"] for row in found.collect()}
    assert status[0] == "END"
    assert all(status[at] is None for at in range(1, 1 + len(good.value)))
