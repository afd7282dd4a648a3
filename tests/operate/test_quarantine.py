"""The quarantine from the command line to the table: what is shown, asked for, and settled."""

import json
import re
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar, Self

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from structlog.testing import capture_logs
from typer.testing import CliRunner

from cdc.cli import app
from cdc.config import Config, load
from cdc.errors import CdcError, ErrorKind
from cdc.events import avro
from cdc.lake import job_state, store
from cdc.lake.job_state import JobState
from cdc.lake.layout import ledger_path, operations_path, quarantine_path, table_path
from cdc.lake.ledger import Ledger, LedgerRow, TableEntry
from cdc.lake.operations import Operations
from cdc.lake.quarantine import SCHEMA, EventState, Quarantine, RefusedEvent
from cdc.operate import operation_files as files
from cdc.operate.desk import Desk
from cdc.operate.operation import Operation
from cdc.operate.quarantine_handlers import discard
from cdc.operate.refused_events import KEY_PROPERTY, MOST_KEYS, Decoder, retry_of
from cdc.operate.reporter import Reporter
from cdc.tables import TableId
from tests.events.recorded import Message, recording, table_topic

RECORDED = recording("tables")
NOW = datetime(2026, 11, 21, 10, 20, 30, 123456, UTC)
PAIRS, NO_KEY = TableId("public", "composite_key"), TableId("public", "no_key")
FIRST_COLUMNS = SCHEMA.names[:9]  # of the quarantine's first version


def messages(table: TableId) -> list[Message]:
    """Events of single rows: neither tombstones nor truncates."""
    found = [(m, RECORDED.decoded(m.value)) for m in RECORDED.of(table_topic(table.name))]
    return [message for message, event in found if event and event["op"] != "t"]


def refused(table: TableId, message: Message, **changed: Any) -> RefusedEvent:  # noqa: ANN401
    frame = avro.frame(message.value)
    facts = {
        "table": str(table),
        "topic": message.topic,
        "partition": 0,
        "offset": message.offset,
        "key": message.key,
        "value": message.value,
        "value_schema_id": frame.schema_id if frame else None,
        "reason": "column v holds a value that int cannot",
        "quarantined_at": NOW,
        "epoch": 1,
    }
    return RefusedEvent(**{**facts, **changed})


EVENTS = [refused(PAIRS, m) for m in messages(PAIRS)]
BY_KEY: dict[tuple[Any, ...], list[int]] = {}
for _event in EVENTS:
    _key = (RECORDED.decoded(_event.key) or {})["key"]
    BY_KEY.setdefault((str(_key["a"]), _key["b"]), []).append(_event.offset)
DECODER = Decoder(RECORDED.schemas.get)


class Registry(BaseHTTPRequestHandler):
    """Answers as the registry does for the recorded schemas."""

    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        found = re.fullmatch(r"/apis/ccompat/v7/schemas/ids/(\d+)", self.path)
        text = RECORDED.schemas.get(int(found[1])) if found else None
        self.send_response(200 if text else 404)
        self.end_headers()
        self.wfile.write(json.dumps({"schema": text}).encode())

    def log_message(self, *_arguments: object) -> None:
        """Nothing to the terminal."""


def lake_table(path: Path, key: list[str]) -> None:
    """Its first commit by hand: delta-rs writes no property that it does not know."""
    fields = [{"name": "a", "type": "long", "nullable": True, "metadata": {}}]
    metadata = {
        "id": path.name,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": [],
        "configuration": {KEY_PROPERTY: json.dumps(key)},
    }
    protocol = {"minReaderVersion": 1, "minWriterVersion": 2}
    (path / "_delta_log").mkdir(parents=True)
    lines = [json.dumps({"protocol": protocol}), json.dumps({"metaData": metadata})]
    (path / "_delta_log" / f"{0:020}.json").write_text("\n".join(lines))


@pytest.fixture
def config(tmp_path: Path) -> Iterator[Config]:
    """With a registry that answers, a running job and two tables in the lake."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Registry)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    (tmp_path / "wal2lake.yaml").write_text(
        "source: {url: 'postgresql://nobody@localhost:1/none', tables: [public.*]}\n"
        "kafka: {bootstrap_servers: 'localhost:1'}\nconnect: {url: 'http://localhost:1'}\n"
        f"registry: {{url: 'http://127.0.0.1:{server.server_port}'}}\nlake: {{path: lake}}\n"
    )
    made = load(tmp_path / "wal2lake.yaml")
    made.state_dir.mkdir()
    job_state.write(made.state_dir, JobState.of_this_process("applying", datetime.now(UTC)))
    for table, key in ((PAIRS, ["a", "b"]), (NO_KEY, [])):
        lake_table(Path(table_path(made, table)), key)
    yield made
    server.shutdown()
    server.server_close()


@pytest.fixture
def quarantine(config: Config) -> Quarantine:
    return Quarantine(quarantine_path(config))


def run(config: Config, *arguments: str, code: int = 0) -> str:
    path = str(config.state_dir.parent / "wal2lake.yaml")
    result = CliRunner().invoke(app, ["quarantine", *arguments, "--config", path])
    error = result.exception
    if isinstance(error, CdcError):
        assert error.policy.exit_code == code, error
        return str(error)
    assert result.exit_code == code, (result.output, error)
    return result.output


class Job:
    """The job's desk with the handler, and what it was told to count."""

    def __init__(self, config: Config, quarantine: Quarantine) -> None:
        self.counts: list[tuple[str, int]] = []
        self.asked: list[Operation] = []
        handlers = {
            "discard": discard(quarantine, lambda *said: self.counts.append(said)),
            "resnapshot": self._resnapshot,
        }
        record = Operations(operations_path(config))
        self._desk = Desk(config.state_dir, record, handlers)

    def _resnapshot(self, operation: Operation, _reporter: Reporter) -> None:
        self.asked.append(operation)

    def __enter__(self) -> Self:
        self._logs = capture_logs()
        self._logs.__enter__()
        self._desk.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._desk.stop(30)
        self._logs.__exit__(None, None, None)


def states(quarantine: Quarantine) -> dict[int, str]:
    return {event.offset: event.state.value for event in quarantine.rows()}


def test_a_quarantine_of_the_first_version_is_open_and_takes_new_events(tmp_path: Path) -> None:
    path = str(tmp_path / "q")
    old = [{name: getattr(e, name) for name in FIRST_COLUMNS} for e in EVENTS[:2]]
    first = pa.schema([SCHEMA.field(name) for name in FIRST_COLUMNS])
    write_deltalake(path, pa.Table.from_pylist(old, schema=first))
    quarantine = Quarantine(path)
    assert quarantine.open_count(str(PAIRS)) == 2
    assert [event.state for event in quarantine.rows()] == [EventState.OPEN] * 2

    quarantine.add(EVENTS[:3])  # two are there already, of no epoch that was noted
    done = quarantine.settle(
        quarantine.rows()[:1], state=EventState.RETRIED, by="me", note="it's", at=NOW
    )

    assert (done, quarantine.open_count(str(PAIRS))) == (1, 2)
    first_one = quarantine.rows()[0]
    assert (first_one.settled_by, first_one.note, first_one.settled_at) == ("me", "it's", NOW)
    assert first_one.value == EVENTS[0].value
    assert DeltaTable(path).schema().to_arrow() is not None
    assert [event.epoch for event in quarantine.rows()] == [0, 0, 1]


def test_what_is_settled_stays_as_it_is(quarantine: Quarantine) -> None:
    quarantine.add(EVENTS[:2])
    quarantine.settle(EVENTS[:1], state=EventState.DISCARDED, by="a", note="x", at=NOW)

    again = quarantine.settle(EVENTS[:2], state=EventState.RETRIED, by="b", note="y", at=NOW)
    quarantine.add(EVENTS[:2])  # as a replay of the log does

    assert again == 1
    found = [(event.state.value, event.settled_by, event.note) for event in quarantine.rows()]
    assert found == [("discarded", "a", "x"), ("retried", "b", "y")]


def test_another_epoch_has_the_same_offsets_again(quarantine: Quarantine) -> None:
    quarantine.add(EVENTS[:1])
    quarantine.add([refused(PAIRS, messages(PAIRS)[0], epoch=2)])

    assert [event.epoch for event in quarantine.rows()] == [1, 2]
    assert quarantine.settle(EVENTS[:1], state=EventState.RETRIED, by="", note="", at=NOW) == 1
    assert quarantine.open_count(str(PAIRS)) == 1


def test_the_list_has_keys_and_no_values(config: Config, quarantine: Quarantine) -> None:
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


def test_the_list_needs_no_registry(
    config: Config, quarantine: Quarantine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAL2LAKE_REGISTRY__URL", "http://127.0.0.1:1")
    monkeypatch.setattr("cdc.kafka.registry._ATTEMPTS", 1)
    quarantine.add(EVENTS[:2])

    listed = json.loads(run(config, "list", "--json"))

    assert [row["key"] for row in listed] == [None, None]


def test_show_tells_everything(config: Config, quarantine: Quarantine) -> None:
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


def test_where_a_key_cannot_be_told_the_whole_table_is_read(
    config: Config, quarantine: Quarantine
) -> None:
    garbage = refused(PAIRS, messages(PAIRS)[0], offset=900, key=b"k")
    quarantine.add([*EVENTS, garbage, refused(NO_KEY, messages(NO_KEY)[0])])

    with Job(config, quarantine) as job:
        said = run(config, "retry", str(PAIRS), "900")
        no_key = run(config, "retry", str(NO_KEY))

    assert "the whole of public.composite_key is read again" in said
    assert "the table has no key" in no_key
    assert [dict(operation.options) for operation in job.asked] == [{"mode": "in-place"}] * 2


def test_a_stopped_table_is_read_whole(config: Config, quarantine: Quarantine) -> None:
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


def test_of_too_many_keys_the_whole_table_is_read() -> None:
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


def test_the_key_is_looked_for_where_the_job_writes_it() -> None:
    assert store.KEY_PROPERTY == KEY_PROPERTY


def test_the_names_of_columns_are_postgres_s_own() -> None:
    """The connector has other names for those that Avro does not take."""
    odd = TableId("public", "odd")
    event = refused(odd, messages(odd)[0])
    values = (RECORDED.decoded(event.key) or {})["key"]

    assert DECODER.key(event) == {"A b": values["A_b"], "1a": values["_1a"]}
    assert DECODER.key_texts(event, ("1a", "A b")) == (str(values["_1a"]), str(values["A_b"]))
    assert DECODER.key_texts(event, ("1a",)) is None
    assert DECODER.key_texts(event, ()) is None


def test_a_row_that_a_reading_refused_has_its_key_as_text() -> None:
    key = json.dumps({"b": "x", "a": "7"}).encode()
    event = refused(PAIRS, messages(PAIRS)[0], offset=-5, key=key, value=None)

    assert DECODER.key_texts(event, ("a", "b")) == ("7", "x")


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


def test_all_means_those_that_were_there(config: Config, quarantine: Quarantine) -> None:
    """One that is refused between the question and the deed is nobody's decision."""
    quarantine.add(EVENTS[:2])
    run(config, "discard", str(PAIRS), "--all", "--reason", "junk", "--detach")
    later = NOW + timedelta(seconds=1)
    quarantine.add([refused(PAIRS, messages(PAIRS)[2], quarantined_at=later)])

    with Job(config, quarantine) as job:
        [operation] = files.everything(config.state_dir)
        while not files.progress(config.state_dir, operation.id).state.ended:
            threading.Event().wait(0.05)

    assert list(states(quarantine).values()) == ["discarded", "discarded", "open"]
    assert job.counts == [(str(PAIRS), 1)]


def test_a_discard_that_was_interrupted_is_finished(config: Config, quarantine: Quarantine) -> None:
    """Settled, but the table was not counted before the job died."""
    quarantine.add(EVENTS[:3])
    run(config, "discard", str(PAIRS), str(EVENTS[0].offset), "--reason", "junk", "--detach")
    quarantine.settle(EVENTS[:1], state=EventState.DISCARDED, by="before", note="junk", at=NOW)

    with Job(config, quarantine) as job:
        [operation] = files.everything(config.state_dir)
        while not files.progress(config.state_dir, operation.id).state.ended:
            threading.Event().wait(0.05)

    assert job.counts == [(str(PAIRS), 2)]
    assert quarantine.rows()[0].settled_by == "before"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("1",), "not discarded without a reason"),
        (("1", "--reason", "  "), "not discarded without a reason"),
        (("--reason", "x"), "name the offsets"),
        (("1", "--all", "--reason", "x"), "name the offsets"),
        (("1x", "--reason", "x"), "is no offset"),
        (("--all", "--reason", "x"), "no open event of"),
        (("123456", "--reason", "x"), "no open event"),
        (("-7", "--reason", "x"), "no open event"),
    ],
)
def test_what_is_not_clear_is_refused_and_nothing_is_asked(
    config: Config, arguments: tuple[str, ...], said: str
) -> None:
    assert said in run(config, "discard", str(PAIRS), *arguments, code=2)
    assert files.everything(config.state_dir) == []


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
