"""The quarantine keeps events, and the commands show them with the keys of their rows."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from cdc.config import Config
from cdc.lake.records.quarantine import SCHEMA, EventState, Quarantine
from cdc.tables import TableId
from tests.client.quarantine.refused import (
    DECODER,
    EVENTS,
    NO_KEY,
    NOW,
    PAIRS,
    RECORDED,
    messages,
    refused,
    run,
)

FIRST_COLUMNS = SCHEMA.names[:9]  # the columns of the table's first version


def test_a_quarantine_of_the_first_version_is_open_and_takes_new_events(tmp_path: Path) -> None:
    path = str(tmp_path / "q")
    old = [{name: getattr(e, name) for name in FIRST_COLUMNS} for e in EVENTS[:2]]
    first = pa.schema([SCHEMA.field(name) for name in FIRST_COLUMNS])
    write_deltalake(path, pa.Table.from_pylist(old, schema=first))
    quarantine = Quarantine(path)
    assert quarantine.open_count(str(PAIRS)) == 2
    assert [event.state for event in quarantine.rows()] == [EventState.OPEN] * 2

    quarantine.add(EVENTS[:3])  # two are there already, without an epoch
    done = quarantine.settle(
        quarantine.rows()[:1], state=EventState.RETRIED, by="me", note="it's", at=NOW
    )

    assert (done, quarantine.open_count(str(PAIRS))) == (1, 2)
    first_one = quarantine.rows()[0]
    assert (first_one.settled_by, first_one.note, first_one.settled_at) == ("me", "it's", NOW)
    assert first_one.value == EVENTS[0].value
    assert DeltaTable(path).schema().to_arrow() is not None
    assert [event.epoch for event in quarantine.rows()] == [0, 0, 1]


def test_a_settled_event_stays_settled_if_it_is_refused_again(quarantine: Quarantine) -> None:
    quarantine.add(EVENTS[:2])
    quarantine.settle(EVENTS[:1], state=EventState.DISCARDED, by="a", note="x", at=NOW)

    again = quarantine.settle(EVENTS[:2], state=EventState.RETRIED, by="b", note="y", at=NOW)
    quarantine.add(EVENTS[:2])  # as a replay of the log does

    assert again == 1
    found = [(event.state.value, event.settled_by, event.note) for event in quarantine.rows()]
    assert found == [("discarded", "a", "x"), ("retried", "b", "y")]


def test_events_of_two_epochs_may_have_the_same_offset(quarantine: Quarantine) -> None:
    quarantine.add(EVENTS[:1])
    quarantine.add([refused(PAIRS, messages(PAIRS)[0], epoch=2)])

    assert [event.epoch for event in quarantine.rows()] == [1, 2]
    assert quarantine.settle(EVENTS[:1], state=EventState.RETRIED, by="", note="", at=NOW) == 1
    assert quarantine.open_count(str(PAIRS)) == 1


def test_list_shows_keys_and_no_values(config: Config, quarantine: Quarantine) -> None:
    garbage = refused(PAIRS, messages(PAIRS)[-1], offset=900, key=b"k", value=b"private words")
    keyless = refused(NO_KEY, messages(NO_KEY)[0])
    quarantine.add([EVENTS[0], garbage, keyless])
    quarantine.settle([garbage], state=EventState.DISCARDED, by="a", note="junk", at=NOW)

    listed = json.loads(run(config, "list", "--json"))
    everything = json.loads(run(config, "list", str(PAIRS), "--all", "--json"))
    shown = run(config, "list", "--all")

    expected = (RECORDED.decoded(EVENTS[0].key) or {})["key"]
    by_table = {row["table"]: row for row in listed}
    assert len(listed) == 2
    assert by_table[str(PAIRS)]["key"] == expected
    assert by_table[str(NO_KEY)]["key"] is None
    assert [(row["offset"], row["state"], row["note"]) for row in everything] == [
        (EVENTS[0].offset, "open", ""),
        (900, "discarded", "junk"),
    ]
    assert "private words" not in shown + json.dumps(everything)
    assert b"private words".hex() not in shown + json.dumps(everything)
    assert "3 events" in shown


def test_list_needs_no_registry(
    config: Config, quarantine: Quarantine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAL2LAKE_REGISTRY__URL", "http://127.0.0.1:1")
    monkeypatch.setattr("cdc.kafka.registry_client._ATTEMPTS", 1)
    quarantine.add(EVENTS[:2])

    listed = json.loads(run(config, "list", "--json"))

    assert [row["key"] for row in listed] == [None, None]


def test_show_prints_the_whole_event(config: Config, quarantine: Quarantine) -> None:
    event = refused(PAIRS, messages(PAIRS)[0], headers=(("h", b"\x01"), ("n", None)))
    quarantine.add([event])

    found = json.loads(run(config, "show", str(PAIRS), str(event.offset), "--json"))
    by_topic = run(config, "show", str(PAIRS), f"{event.topic}:{event.offset}")

    assert found["event"]["after"] == (RECORDED.decoded(event.value) or {})["after"]
    assert bytes.fromhex(found["value_hex"]) == event.value
    assert bytes.fromhex(found["key_hex"]) == event.key
    assert found["headers"] == [["h", "01"], ["n", None]]
    assert (event.value or b"").hex() in by_topic
    assert "no open event at offset 77" in run(config, "show", str(PAIRS), "77", code=2)


def test_the_names_of_columns_are_postgres_s_own() -> None:
    """The connector renames columns whose names Avro does not allow."""
    odd = TableId("public", "odd")
    event = refused(odd, messages(odd)[0])
    values = (RECORDED.decoded(event.key) or {})["key"]

    assert DECODER.key(event) == {"A b": values["A_b"], "1a": values["_1a"]}
    assert DECODER.key_texts(event, ("1a", "A b")) == (str(values["_1a"]), str(values["A_b"]))
    assert DECODER.key_texts(event, ("1a",)) is None
    assert DECODER.key_texts(event, ()) is None


def test_a_row_refused_in_a_reading_has_its_key_as_text() -> None:
    key = json.dumps({"b": "x", "a": "7"}).encode()
    event = refused(PAIRS, messages(PAIRS)[0], offset=-5, key=key, value=None)

    assert DECODER.key_texts(event, ("a", "b")) == ("7", "x")
