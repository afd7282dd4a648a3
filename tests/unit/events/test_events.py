"""Tests of frames, envelopes and markers, the independent way to read the log."""

import pytest

from cdc.errors import CdcError, ErrorKind
from cdc.events import avro
from cdc.events.envelope import Op, change_event
from cdc.events.transactions import END, is_marker_schema, marker, txid_of
from tests.events.recorded import PREFIX, recording, table_topic

CUSTOMERS = table_topic("customers")


@pytest.mark.parametrize("data", [None, b"", b"\0\0\0\1", b"\1\0\0\0\1body"])
def test_data_without_a_frame(data: bytes | None) -> None:
    assert avro.frame(data) is None


def test_a_frame_has_an_id_and_a_body() -> None:
    assert avro.frame(b"\0\0\0\1\2body") == avro.Frame(258, b"body")


@pytest.mark.parametrize("table", ["customers", "toasty", "odd"])
def test_encoding_gives_the_recorded_bytes(table: str) -> None:
    found = recording("tables")
    values = [m.value for m in found.of(table_topic(table)) if m.value]
    for value in values:
        frame = avro.frame(value)
        assert frame is not None
        text = found.schemas[frame.schema_id]
        assert avro.encode(text, frame.schema_id, avro.decode(text, frame.body)) == value
    assert values


@pytest.mark.parametrize("spoil", [lambda b: b[:-3], lambda b: b + b"\0", lambda _: b"\xff" * 40])
def test_a_corrupt_body_is_a_bad_event(spoil) -> None:  # type: ignore[no-untyped-def] # noqa: ANN001
    found = recording("tables")
    frame = avro.frame(found.of(CUSTOMERS)[0].value)
    assert frame is not None

    with pytest.raises(CdcError) as caught:
        avro.decode(found.schemas[frame.schema_id], spoil(frame.body))

    assert caught.value.kind is ErrorKind.BAD_EVENT
    assert "Ada" not in str(caught.value)


def test_events_have_operation_key_row_and_transaction() -> None:
    events = recording("tables").events(table_topic("composite_key"))

    assert [event.op for event in events] == [
        Op.READ, Op.DELETE, Op.CREATE, Op.DELETE, Op.CREATE, Op.TRUNCATE, Op.CREATE,
    ]  # fmt: skip
    assert events[1].key == {"a": 1, "b": "k"}
    assert events[1].image == {"a": 1, "b": "k", "c": None}
    assert events[0].txid is None
    assert events[1].txid is not None
    assert events[1].txid == events[2].txid


def test_a_delete_without_a_row_before_has_its_key() -> None:
    value = {"op": "d", "source": {"schema": "s", "table": "t"}, "before": None, "after": None}

    assert change_event("x", 1, value, {"key": {"id": 7}}).image == {"id": 7}
    assert change_event("x", 1, value, {"key": None}).image is None


@pytest.mark.parametrize("value", [{}, {"op": "x", "source": {}}, {"op": "c", "source": None}])
def test_another_record_is_not_an_event(value: dict[str, object]) -> None:
    with pytest.raises(CdcError, match="is not a change event"):
        change_event("topic", 3, value)


def test_an_end_counts_events_by_topic() -> None:
    found = recording("tables")
    messages = found.of(f"{PREFIX}.transaction")
    markers = [marker(found.decoded(m.value) or {}, prefix=PREFIX) for m in messages]
    ends = [found for found in markers if found.status == END]

    assert [end.lsn for end in ends] == sorted({end.lsn for end in ends})
    counted = {topic for end in ends for topic in end.counts}
    assert CUSTOMERS in counted
    for topic in counted & {m.topic for m in found.messages}:
        events = [e.txid for e in found.events(topic) if e.txid is not None]
        assert len(events) == sum(end.counts.get(topic, 0) for end in ends)
        assert set(events) == {end.txid for end in ends if topic in end.counts}
    assert all(end.committed_at and end.committed_at.tzinfo for end in ends)


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"id": "x", "status": "END", "ts_ms": 1},
        {"id": "1:2", "status": "ROLLBACK", "ts_ms": 1},
        {"id": "1:2", "status": "END", "ts_ms": None},
    ],
)
def test_another_record_is_not_a_marker(record: dict[str, object]) -> None:
    with pytest.raises(CdcError, match="is not a transaction marker"):
        marker(record, prefix="p")


def test_the_schema_of_markers_is_distinguished_from_others() -> None:
    schemas = recording("tables").schemas

    assert [number for number, text in schemas.items() if is_marker_schema(text)] == [10]
    assert not is_marker_schema("nothing")


def test_a_transaction_is_known_by_the_first_part_of_its_id() -> None:
    assert txid_of("742:22063288") == txid_of("742:22064384") == 742
