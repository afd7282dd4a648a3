"""Commands ask for refused events to be retried or discarded, and the job settles them."""

import json
import threading
from datetime import timedelta

import pytest

from cdc.client.quarantine import MOST_KEYS, retry_of
from cdc.config import Config
from cdc.errors import CdcError, ErrorKind
from cdc.events import avro
from cdc.lake.layout import ledger_path, operations_path
from cdc.lake.records.ledger import Ledger, LedgerRow, TableEntry
from cdc.lake.records.operations import Operations
from cdc.lake.records.quarantine import EventState, Quarantine
from cdc.operations.desk.reporter import Reporter
from cdc.operations.discard import discard
from cdc.state import operation_files as files
from cdc.state.operation import Operation
from tests.client.quarantine.refused import (
    BY_KEY,
    DECODER,
    EVENTS,
    NO_KEY,
    NOW,
    PAIRS,
    RECORDED,
    Job,
    messages,
    refused,
    run,
    states,
)
from tests.waiting import until


def test_a_retry_reads_the_keys_of_the_events(config: Config, quarantine: Quarantine) -> None:
    quarantine.add(EVENTS)
    key, offsets = next((k, o) for k, o in BY_KEY.items() if len(o) > 1)

    with Job(config, quarantine) as job:
        run(config, "retry", str(PAIRS), str(offsets[0]))
        run(config, "retry", str(PAIRS))

    one, all_of_them = (operation.options for operation in job.asked)
    assert [tuple(found) for found in json.loads(one["keys"])] == [key]
    assert json.loads(one["offsets"]) == offsets
    assert sorted(map(tuple, json.loads(all_of_them["keys"]))) == sorted(BY_KEY)
    assert json.loads(all_of_them["offsets"]) == [event.offset for event in EVENTS]
    assert {operation.tables for operation in job.asked} == {(str(PAIRS),)}


def test_a_retry_reads_the_whole_table_if_an_event_s_key_is_unknown(
    config: Config, quarantine: Quarantine
) -> None:
    garbage = refused(PAIRS, messages(PAIRS)[0], offset=900, key=b"k")
    quarantine.add([*EVENTS, garbage, refused(NO_KEY, messages(NO_KEY)[0])])

    with Job(config, quarantine) as job:
        said = run(config, "retry", str(PAIRS), "900")
        no_key = run(config, "retry", str(NO_KEY))

    assert "reading all of public.composite_key again" in said
    assert "the table has no key" in no_key
    assert [dict(operation.options) for operation in job.asked] == [{"mode": "in-place"}] * 2


def test_a_retry_reads_a_stopped_table_whole(config: Config, quarantine: Quarantine) -> None:
    quarantine.add(EVENTS)
    entry = TableEntry(table=str(PAIRS), path="", version=0, offset=9, state="stopped")
    row = LedgerRow(
        cut=1, epoch=1, lsn=1, committed_at=NOW, published_at=NOW, transactions=1, tables=(entry,)
    )
    Ledger(ledger_path(config)).append(row)

    with Job(config, quarantine) as job:
        said = run(config, "retry", str(PAIRS), str(EVENTS[0].offset))

    assert "the table is stopped" in said
    assert dict(job.asked[0].options) == {"mode": "in-place"}


def test_a_retry_of_too_many_keys_reads_the_whole_table() -> None:
    schema_id = int.from_bytes((EVENTS[0].key or b"")[1:5])
    text = RECORDED.schemas[schema_id]
    many = [
        refused(
            PAIRS,
            messages(PAIRS)[0],
            offset=1000 + number,
            key=avro.encode(text, schema_id, {"key": {"a": number, "b": "x"}}),
        )
        for number in range(MOST_KEYS + 1)
    ]

    assert retry_of(many, many, ("a", "b"), DECODER).keys is None
    assert retry_of(many[1:], many, ("a", "b"), DECODER).keys == MOST_KEYS


def test_discarding_marks_the_events_and_counts_the_table(
    config: Config, quarantine: Quarantine
) -> None:
    quarantine.add(EVENTS)
    first, rest = EVENTS[0], EVENTS[1:]

    with Job(config, quarantine) as job:
        said = run(config, "discard", str(PAIRS), str(first.offset), "--reason", "it's junk")
        run(config, "discard", str(PAIRS), "--all", "--reason", "gone")

    assert f"1 event discarded, {len(rest)} open" in said
    assert job.counts == [(str(PAIRS), len(rest)), (str(PAIRS), 0)]
    rows = quarantine.rows()
    assert [row.note for row in rows] == ["it's junk", *["gone"] * len(rest)]
    assert {row.state for row in rows} == {EventState.DISCARDED}
    assert all(row.settled_by and row.settled_at for row in rows)
    recorded = Operations(operations_path(config)).rows()
    assert [(row["command"], row["state"]) for row in recorded] == [("discard", "done")] * 2


def test_discarding_all_events_means_those_at_the_time_of_the_command(
    config: Config, quarantine: Quarantine
) -> None:
    """An event that is refused after the command was given is not discarded by it."""
    quarantine.add(EVENTS[:2])
    run(config, "discard", str(PAIRS), "--all", "--reason", "junk", "--detach")
    later = NOW + timedelta(seconds=1)
    quarantine.add([refused(PAIRS, messages(PAIRS)[2], quarantined_at=later)])

    with Job(config, quarantine) as job:
        [operation] = files.all_operations(config.state_dir)
        until(lambda: files.progress(config.state_dir, operation.id).state.ended)

    assert list(states(quarantine).values()) == ["discarded", "discarded", "open"]
    assert job.counts == [(str(PAIRS), 1)]


def test_a_discard_that_was_interrupted_is_finished(config: Config, quarantine: Quarantine) -> None:
    """The events were settled, but the job died before it counted the table's open events."""
    quarantine.add(EVENTS[:3])
    run(config, "discard", str(PAIRS), str(EVENTS[0].offset), "--reason", "junk", "--detach")
    quarantine.settle(EVENTS[:1], state=EventState.DISCARDED, by="before", note="junk", at=NOW)

    with Job(config, quarantine) as job:
        [operation] = files.all_operations(config.state_dir)
        until(lambda: files.progress(config.state_dir, operation.id).state.ended)

    assert job.counts == [(str(PAIRS), 2)]
    assert quarantine.rows()[0].settled_by == "before"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("1",), "not discarded without a reason"),
        (("1", "--reason", "  "), "not discarded without a reason"),
        (("--reason", "x"), "must be named"),
        (("1", "--all", "--reason", "x"), "must be named"),
        (("1x", "--reason", "x"), "is not an offset"),
        (("--all", "--reason", "x"), "no open event of"),
        (("123456", "--reason", "x"), "no open event"),
        (("-7", "--reason", "x"), "no open event"),
    ],
)
def test_an_ambiguous_discard_is_refused_without_a_request(
    config: Config, arguments: tuple[str, ...], said: str
) -> None:
    assert said in run(config, "discard", str(PAIRS), *arguments, code=2)
    assert files.all_operations(config.state_dir) == []


def test_the_handler_refuses_an_offset_that_is_not_there(
    config: Config, quarantine: Quarantine
) -> None:
    quarantine.add(EVENTS[:1])
    operation = Operation(
        id="1-a",
        command="discard",
        tables=(str(PAIRS),),
        line="",
        asked_by="me",
        asked_at=NOW.isoformat(),
        options={"reason": "x", "offsets": "[123456]"},
    )
    begun = files.progress(config.state_dir, operation.id)
    files.write_progress(config.state_dir, begun)
    reporter = Reporter(config.state_dir, begun, threading.Event())

    with pytest.raises(CdcError) as raised:
        discard(quarantine, lambda *_: None)(operation, reporter)

    assert raised.value.kind is ErrorKind.CONFIG
    assert states(quarantine) == {EVENTS[0].offset: "open"}
