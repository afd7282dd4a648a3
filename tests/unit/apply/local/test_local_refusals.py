"""Without Spark, an event is refused for the same reasons, and its neighbours are kept."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cdc.apply.changes import reasons
from cdc.apply.local.arrow import log_events
from cdc.apply.local.batch import LocalBatch
from cdc.apply.local.change import Change
from cdc.apply.local.decode import TableDecoder
from cdc.apply.local.lake_rows import NoRows
from cdc.apply.local.not_local import NotLocalError
from cdc.apply.local.quarantine import refuse
from cdc.config import Job
from cdc.errors import CdcError, ErrorKind
from cdc.events import avro
from cdc.events.envelope import OLD_KEY
from cdc.events.schema import Column, TableSchema, table_schema_from_avro
from cdc.lake.records.quarantine import Quarantine
from cdc.lake.table.positions import Position
from cdc.tables import TableId, TableMode
from tests.events.local_lake import LocalLake, log_table
from tests.events.recorded import Message, recording, table_topic
from tests.events.source import SCHEMA_ID, TABLE, Source, envelope, placeholders

RECORDED = recording("tables")
CUSTOMERS = TableId("public", "customers")
WRITER, KEY_WRITER, MARKERS = 123, 122, 10
SCHEMAS = {number: RECORDED.schemas[number] for number in (WRITER, MARKERS)}
SCHEMA = table_schema_from_avro(
    RECORDED.schemas[WRITER], table=CUSTOMERS, key=("id",), mode=TableMode.KEYED
)
ROW = {"id": 1, "name": "Ada", "balance": "1.00", "born": None, "seen": None, "created": 0}
ROW |= {"tags": None}
MARK = "no-value"


def written(op: str, **images: Any) -> bytes:  # noqa: ANN401 - rows
    value = envelope(CUSTOMERS, op, before=images.get("before"), after=images.get("after"))
    return avro.encode(RECORDED.schemas[WRITER], WRITER, value)


def changes(values: Sequence[bytes | None], schema: TableSchema = SCHEMA) -> list[Change]:
    topic = table_topic("customers")
    messages = [Message(topic=topic, offset=n, key=None, value=v) for n, v in enumerate(values)]
    decoder = TableDecoder(SCHEMAS, schema, placeholder=MARK)
    return decoder.decode(log_events(log_table(messages)))


def test_a_message_that_is_no_event_of_its_table_is_refused() -> None:
    orders = next(m.value for m in RECORDED.of(table_topic("orders")) if m.value)
    other = avro.encode(
        RECORDED.schemas[WRITER],
        WRITER,
        envelope(TableId("public", "other"), "c", before=None, after=ROW),
    )
    good = written("c", after=ROW)
    values = [None, good, b"", b"junk", orders, other, good[:9], written("x", after=ROW)]
    values.append(good + b"bytes are left over")

    found = {change.offset: change.reason for change in changes(values)}

    assert found == {
        1: None,
        2: reasons.NO_FRAME,
        3: reasons.NO_FRAME,
        4: reasons.UNKNOWN_SCHEMA,
        5: reasons.WRONG_TABLE,
        6: reasons.NOT_AN_EVENT,
        7: reasons.NOT_AN_EVENT,
        8: None,
    }


def test_a_row_that_the_lake_cannot_hold_is_refused_by_its_first_such_column() -> None:
    values = [
        written("u", after={**ROW, "balance": "NAN"}),
        written("u", after={**ROW, "born": 2_932_897, "balance": "9" * 20}),
        written("u", after={**ROW, "name": "Bo~"}).replace(b"Bo~", b"Bo\xff"),
        written("u", after=None),
        written("c", after={**ROW, "name": MARK}),
        written("u", after={**ROW, "name": MARK}),
        written("d", before=None),
    ]

    found = changes(values)

    def loss(name: str) -> str:
        kind = {c.name: c.type for c in SCHEMA.columns}[name]
        limit = {"balance": "NaN, infinity, or too many digits"}.get(name, "")
        return reasons.loss(name, kind, limit)

    assert [change.reason for change in found] == [
        loss("balance"),
        loss("balance"),
        loss("name"),
        reasons.NO_ROW,
        reasons.UNCHANGED_IN_NEW,
        None,
        reasons.NO_KEY,
    ]
    assert [change.key for change in found] == [(1,), (1,), (1,), None, (1,), (1,), None]


def test_a_delete_without_a_row_has_the_key_of_its_key() -> None:
    key_text = RECORDED.schemas[KEY_WRITER]
    key = avro.encode(key_text, KEY_WRITER, {"key": {"id": 7}})
    message = Message(topic="t", offset=0, key=key, value=written("d", before=None))
    decoder = TableDecoder(SCHEMAS, SCHEMA, placeholder=MARK, key_schemas={KEY_WRITER: key_text})

    [change] = decoder.decode(log_events(log_table([message])))

    assert (change.key, change.reason) == ((7,), None)


def toasty(mode: TableMode = TableMode.KEYED) -> LocalLake:
    schemas = {SCHEMA_ID: RECORDED.schemas[SCHEMA_ID]}
    key = ("id",) if mode is TableMode.KEYED else ()
    schema = table_schema_from_avro(schemas[SCHEMA_ID], table=TABLE, key=key, mode=mode)
    return LocalLake(schema=schema, decoder=TableDecoder(schemas, schema, placeholder=MARK))


def test_an_unchanged_value_without_a_row_is_refused() -> None:
    source = Source(placeholder=MARK)
    source.insert(1, 1, 1)
    source.update(1, 2, {})
    source.insert(2, 1, 1)
    source.rekey(2, 3, {})
    created, updated, _, deleted, moved = source.messages()
    lake, moved_lake = toasty(), toasty()

    lake.apply([updated])
    moved_lake.apply([created])
    moved_lake.apply([deleted, moved])

    assert lake.refused == {updated.offset: reasons.NO_ROW_TO_KEEP_FROM}
    assert moved_lake.refused == {moved.offset: reasons.NO_OLD_ROW}
    assert (lake.position.rows_applied, lake.position.updates) == (0, 1)
    assert (moved_lake.position.rows_applied, moved_lake.position.inserts) == (2, 1)


def test_an_unchanged_value_is_not_taken_across_a_refused_event() -> None:
    source = Source(placeholder=MARK)
    source.insert(1, 1, 1)
    source.update(1, 2, {"big": 2})
    source.update(1, 3, {})
    created, changed, last = source.messages()
    broken = {**source.rows[1], "big": "x", "bigia": [None]}
    text = RECORDED.schemas[SCHEMA_ID]
    value = avro.encode(text, SCHEMA_ID, envelope(TABLE, "u", before=None, after=broken))
    lake = toasty()

    lake.apply([created, replace(changed, value=value), last])

    assert lake.refused == {
        changed.offset: reasons.loss(
            "bigia",
            "array<int>",
            "several dimensions, only NULL elements, or an element that does not fit",
        ),
        last.offset: reasons.AFTER_REFUSED,
    }
    assert lake.by_key == {}


def test_too_many_refused_events_stop_the_table() -> None:
    lake = toasty()
    lake.policy = Job(quarantine_limit_run=2)
    junk = [Message(topic="t", offset=n, key=None, value=b"junk") for n in range(3)]

    with pytest.raises(CdcError) as stopped:
        lake.apply(junk)

    assert stopped.value.kind is ErrorKind.TABLE_STOPPED
    assert stopped.value.message.endswith(f"the first at offset 0: {reasons.NO_FRAME}")


def test_more_copies_deleted_than_held_are_refused() -> None:
    schemas = {131: RECORDED.schemas[131]}
    table = TableId("public", "no_key")
    schema = table_schema_from_avro(schemas[131], table=table, key=(), mode=TableMode.MULTISET)
    lake = LocalLake(schema=schema, decoder=TableDecoder(schemas, schema, placeholder=MARK))
    value = envelope(table, "d", before={"x": 1, "y": "a"}, after=None)
    data = avro.encode(schemas[131], 131, value)

    lake.apply([Message(topic="t", offset=3, key=None, value=data)])

    assert lake.refused == {3: reasons.TOO_FEW_COPIES}


def test_a_multiset_with_floats_is_left_to_spark() -> None:
    columns = (Column("x", "array<double>"),)
    schema = TableSchema(table=TABLE, columns=columns, key=(), mode=TableMode.MULTISET)
    batch = LocalBatch(
        schema=schema,
        position=Position(epoch=1, offset=-1),
        decoder=TableDecoder({}, schema, placeholder=MARK),
        lake=NoRows(),
        policy=Job(),
    )

    with pytest.raises(NotLocalError):
        batch.outcome(log_table([]), 0)


def test_refused_events_are_in_quarantine_as_they_came(tmp_path: Path) -> None:
    quarantine = Quarantine(str(tmp_path / "q"))
    headers: tuple[tuple[str, bytes], ...] = ((OLD_KEY, b"{}"),)
    junk = Message(topic="t", offset=5, key=b"k", value=b"junk", headers=headers)
    lake = toasty()
    outcome = lake.apply([junk])
    rows = log_table([junk])
    rows = rows.append_column("partition", [[0]])

    done = refuse(rows, outcome, TABLE, quarantine)
    again = refuse(rows, outcome, TABLE, quarantine)

    [event] = quarantine.rows()
    assert (event.offset, event.key, event.value, event.headers) == (5, b"k", b"junk", headers)
    assert (event.reason, event.table, event.epoch) == (reasons.NO_FRAME, str(TABLE), 1)
    assert done.position.refused == again.position.refused == 1


def test_every_form_of_the_placeholder_is_kept_back() -> None:
    row: dict[str, Any] = {"id": 1, "n": 1, **placeholders(MARK)}
    text = RECORDED.schemas[SCHEMA_ID]
    value = avro.encode(text, SCHEMA_ID, envelope(TABLE, "u", before=None, after=row))
    lake = toasty()

    [change] = lake.decoder.decode(
        log_events(log_table([Message(topic="t", offset=0, key=None, value=value)]))
    )

    assert {lake.schema.names[number] for number in change.keep} == set(placeholders(MARK))
