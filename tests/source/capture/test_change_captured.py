"""Test adding and removing captured tables, against real Postgres, Kafka and Connect."""

import json
import threading
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import typer
import yaml
from confluent_kafka import Consumer, Producer, TopicPartition
from typer.testing import CliRunner

from cdc.capture.bootstrap import establish
from cdc.capture.change_captured import CapturedChange, change_captured, unpublish
from cdc.cli.plan import plan as print_plan
from cdc.client.check import check
from cdc.client.plan_inputs import plan
from cdc.config import Config
from cdc.errors import CdcError, ErrorKind
from cdc.kafka.broker import Broker
from cdc.kafka.empty_topic import empty_topic
from cdc.kafka.offsets import end_offsets
from cdc.kafka.topics import TopicSpec, ensure_topics, topic_ids
from cdc.source.catalog.captured import NEW
from cdc.source.connector import worker_rest
from cdc.source.connector.settings import configured_tables
from cdc.source.notes.structure_table import BASELINE
from cdc.source.server.connection import Connection, connect, password
from cdc.source.setup.prepare import publication_tables
from cdc.state.endpoints import Endpoints
from cdc.state.pipeline import Pipeline
from cdc.tables import TableId
from cdc.waiting import until
from tests.source.conftest import Maker
from tests.source.topic import Event, Topic, ops

pytestmark = pytest.mark.integration


def naming(config: Config, *names: str) -> Config:
    tables = [f"{config.name}.{name}" for name in names]
    return config.model_copy(update={"source": config.source.model_copy(update={"tables": tables})})


def topic_of(pipeline: Pipeline, table: str) -> Topic:
    return Topic(pipeline.endpoints, TableId(pipeline.name, table).topic(pipeline.name))


def begin(pipeline: Pipeline, source: Connection, *tables: str) -> Config:
    """Capture new tables; return once the stream flows."""
    for table in tables:
        source.execute(f"CREATE TABLE {table} (id int PRIMARY KEY)".encode())
    begun = naming(pipeline.config, *tables)
    establish(Pipeline(begun, pipeline.endpoints))
    source.execute(f"INSERT INTO {tables[0]} VALUES (0)".encode())
    topic_of(pipeline, tables[0]).until(lambda found: len(found) == 1)
    return begun


def inserted(events: list[Event]) -> list[int]:
    return [value["after"]["id"] for _, value in events]


_PACE_SECONDS = 0.03
"""The pause between two commits, because every event is decoded several times here."""


class Writer(threading.Thread):
    """A thread that commits rows in a loop, each time one row to each of two tables."""

    def __init__(self, url: str, schema: str) -> None:
        super().__init__(daemon=True)
        self._url, self._schema = url, schema
        self.committed = 0
        self.ended = threading.Event()

    def run(self) -> None:
        with connect(self._url) as connection:
            connection.execute(f"SET search_path = {self._schema}".encode())
            while not self.ended.wait(_PACE_SECONDS):
                row = (self.committed + 1,)
                with connection.transaction():
                    connection.execute("INSERT INTO t VALUES (%s)", row)
                    connection.execute("INSERT INTO late VALUES (%s)", row)
                self.committed += 1

    def end(self) -> int:
        """Stop, and return the number of the last row."""
        self.ended.set()
        self.join()
        return self.committed


def test_a_table_is_taken_in_under_writes(
    chain: Endpoints, source: Connection, make_config: Maker
) -> None:
    """Its events arrive from then on, without a snapshot; the other loses and repeats none."""
    config = begin(Pipeline(make_config(chain), chain), source, "t")
    pipeline = Pipeline(config, chain)
    source.execute("CREATE TABLE late (id int PRIMARY KEY)")
    source.execute("INSERT INTO late SELECT -n FROM generate_series(1, 1000) n")
    wanted = naming(config, "t", "late")
    writer = Writer(chain.source_url, config.name)
    writer.start()
    try:
        done = change_captured(Pipeline(wanted, chain))
        then = writer.committed + 2  # the next one may already be under way
        until(lambda: writer.committed > then + 10, 60, "the writer stands still")
    finally:
        last = writer.end()

    late = TableId(config.name, "late")
    assert (done.added, done.removed) == ((late,), ())
    every = topic_of(pipeline, "t").until(lambda found: len(found) >= last + 1)
    assert inserted(every) == list(range(last + 1))
    events = topic_of(pipeline, "late").until(lambda found: inserted(found)[-1:] == [last])
    assert set(ops(events)) == {"c"}
    found = inserted(events)
    assert found == list(range(found[0], last + 1))
    assert 0 < found[0] <= then
    assert counted(pipeline)[late.topic(config.name)] == len(found)


def counted(pipeline: Pipeline) -> dict[str, int]:
    """Return the event counts of each topic, summed over all END markers."""
    total: dict[str, int] = {}
    for _, marker in Topic(pipeline.endpoints, f"{pipeline.name}.transaction").events():
        for entry in (marker["data_collections"] or []) if marker["status"] == "END" else []:
            name = f"{pipeline.name}.{entry['data_collection']}"
            total[name] = total.get(name, 0) + entry["event_count"]
    return total


def test_again_changes_nothing(chain: Endpoints, source: Connection, make_config: Maker) -> None:
    config = begin(Pipeline(make_config(chain), chain), source, "t")
    pipeline = Pipeline(config, chain)
    source.execute("CREATE TABLE late (id int PRIMARY KEY)")
    wanted = naming(config, "t", "late")
    change_captured(Pipeline(wanted, chain))
    # A connector that starts opens its stream twice; with an event it is at the second.
    source.execute("INSERT INTO late VALUES (1)")
    topic_of(pipeline, "late").until(lambda found: len(found) == 1)
    before = state(pipeline, source)

    again = change_captured(Pipeline(wanted, chain))

    assert not again.reconfigured
    assert (again.added, again.removed) == ((), ())
    assert [str(table.table) for table in again.tables] == wanted.source.tables[::-1]
    assert state(pipeline, source) == before
    assert before[0] == 2


def state(pipeline: Pipeline, source: Connection) -> tuple[object, ...]:
    """Return what a call may change: baselines, publication, settings, topics, slot reader."""
    notes = source.execute(
        "SELECT count(*) FROM wal2lake.structure WHERE command = %s AND table_schema = %s",
        (BASELINE, pipeline.name),
    ).fetchone()
    reader = source.execute(
        "SELECT active_pid FROM pg_replication_slots WHERE slot_name = %s", (pipeline.name,)
    ).fetchone()
    topics = [TableId(pipeline.name, name).topic(pipeline.name) for name in ("t", "late", "bad")]
    return (
        notes and notes[0],
        publication_tables(source, pipeline.name),
        worker_rest.configuration(pipeline.endpoints.connect, pipeline.name),
        topic_ids(pipeline.endpoints.kafka, topics),
        reader,
    )


def test_a_table_is_taken_out_and_in_again(
    chain: Endpoints, source: Connection, make_config: Maker
) -> None:
    config = begin(Pipeline(make_config(chain), chain), source, "t", "old")
    pipeline = Pipeline(config, chain)
    old = TableId(config.name, "old")
    without = naming(config, "t")

    planned = plan(Pipeline(without, chain))
    assert [each.table for each in planned.removed] == [str(old)]
    assert planned.settings == ("table.include.list",)

    assert change_captured(Pipeline(without, chain)).removed == (old,)
    assert plan(Pipeline(without, chain)).empty

    source.execute("INSERT INTO old VALUES (1)")
    source.execute("INSERT INTO t VALUES (1)")
    topic_of(pipeline, "t").until(lambda found: len(found) == 2)
    assert topic_of(pipeline, "old").events() == []
    assert old in (publication_tables(source, config.name) or set())
    for _ in range(2):
        unpublish(Pipeline(without, chain), [old])
    assert old not in (publication_tables(source, config.name) or set())
    source.execute("ANALYZE old")
    planned = plan(pipeline)
    assert [(each.table.table, each.table.rows, each.replaces) for each in planned.added] == [
        (str(old), 1, False)
    ]
    assert (planned.publish, planned.topics) == ((str(old),), ())

    assert change_captured(pipeline).added == (old,)
    source.execute("INSERT INTO old VALUES (2)")
    events = topic_of(pipeline, "old").until(lambda found: len(found) >= 1)
    assert [(value["op"], value["after"]["id"]) for _, value in events] == [("c", 2)]


def test_what_was_interrupted_is_finished(
    chain: Endpoints, source: Connection, make_config: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = begin(Pipeline(make_config(chain), chain), source, "t")
    source.execute("CREATE TABLE late (id int PRIMARY KEY)")
    wanted = naming(config, "t", "late")

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(worker_rest, "configure", killed)
        patch.setattr(worker_rest, "resume", killed)
        with pytest.raises(KeyboardInterrupt):
            change_captured(Pipeline(wanted, chain))
    stopped = worker_rest.status(chain.connect, config.name)
    assert stopped is not None
    assert not stopped.running

    assert change_captured(Pipeline(wanted, chain)).added == (TableId(config.name, "late"),)
    worker_rest.stop(chain.connect, config.name)  # as if the process was killed before resuming it

    assert change_captured(Pipeline(wanted, chain)) == replace_tables(
        change_captured(Pipeline(wanted, chain))
    )
    source.execute("INSERT INTO late VALUES (1)")
    topic_of(Pipeline(config, chain), "late").until(lambda found: ops(found) == ["c"])


def replace_tables(found: CapturedChange) -> CapturedChange:
    return replace(found, added=(), removed=(), reconfigured=False)


def test_a_start_goes_on_without_a_new_table(
    chain: Endpoints, source: Connection, make_config: Maker
) -> None:
    """It holds also if it is named literally or unfit; ``check`` says how to add it."""
    config = begin(Pipeline(make_config(chain), chain), source, "t")
    source.execute("CREATE TABLE late (id int PRIMARY KEY); CREATE TABLE bad (id int)")
    wanted = naming(config, "t", "late", "bad")

    assert [table.table.name for table in establish(Pipeline(wanted, chain))] == ["t"]

    findings = check(Pipeline(wanted, chain))
    said = {finding.subject: finding for finding in findings if finding.message == NEW}
    assert set(said) == {f"{config.name}.late", f"{config.name}.bad"}
    assert "apply-config" in said[f"{config.name}.late"].remedy
    assert {
        t.name for t in configured_tables(worker_rest.configuration(chain.connect, config.name))
    } == {"t"}


def refusal(pipeline: Pipeline) -> CdcError:
    with pytest.raises(CdcError) as caught:
        change_captured(pipeline)
    return caught.value


def test_refused_before_anything_is_changed(
    chain: Endpoints, source: Connection, make_config: Maker
) -> None:
    config = begin(Pipeline(make_config(chain), chain), source, "t")
    pipeline = Pipeline(config, chain)
    source.execute("CREATE TABLE late (id int PRIMARY KEY); CREATE TABLE bad (id int)")
    before = state(pipeline, source)

    planned = plan(Pipeline(naming(config, "t", "late", "bad"), chain))
    assert {refusal.subject for refusal in planned.refused} == {f"{config.name}.bad"}
    assert planned.topics[1:] == (TableId(config.name, "late").topic(config.name),)
    error = refusal(Pipeline(naming(config, "t", "late", "bad"), chain))
    assert (error.kind, error.message.partition(":")[0]) == (
        ErrorKind.SOURCE_NOT_READY,
        f"{config.name}.bad",
    )
    wanted = naming(config, "t", "late")
    stranger = replace(chain, source_url=of_a_stranger(chain, source, config.name))
    error = refusal(Pipeline(wanted, stranger))
    assert error.kind is ErrorKind.SOURCE_NOT_READY
    assert "is not published, and the role does not own it" in error.message
    error = refusal(Pipeline(wanted, replace(chain, kafka=Broker("127.0.0.1:1"))))
    assert error.kind is ErrorKind.UNREACHABLE
    error = refusal(Pipeline(wanted, replace(chain, connect="http://127.0.0.1:1")))
    assert error.kind is ErrorKind.UNREACHABLE
    error = refusal(Pipeline(wanted.model_copy(update={"name": "nobody"}), chain))
    assert (error.kind, "has captured nothing yet" in error.message) == (ErrorKind.CONFLICT, True)

    assert state(pipeline, source) == before


def test_plan_is_printed_and_ends_with_its_exit_code(
    chain: Endpoints, source: Connection, make_config: Maker, tmp_path: Path
) -> None:
    config = begin(Pipeline(make_config(chain), chain), source, "t")
    source.execute(
        "CREATE TABLE late (id int PRIMARY KEY, twice int GENERATED ALWAYS AS (1) STORED)"
    )
    source.execute("CREATE TABLE bad (id int)")

    code, output = printed(Pipeline(naming(config, "t"), chain), tmp_path)
    warning, _, plan = output.partition("connectors/README.md\n")
    assert warning.startswith("! connect.source_password: is not set: ")
    assert (code, plan) == (0, "no changes\n")
    code, output = printed(Pipeline(naming(config, "t", "late"), chain), tmp_path)
    assert code == 0
    assert f"+ {config.name}.late: key id; rows not counted yet" in output
    assert "column twice will not arrive" in output
    code, output = printed(Pipeline(naming(config, "late", "bad"), chain), tmp_path, "--json")
    found = json.loads(output)
    assert (code, found["fit"], found["removed"][0]["table"]) == (5, False, f"{config.name}.t")
    assert password(chain.source_url) not in output


def printed(pipeline: Pipeline, folder: Path, *arguments: str) -> tuple[int, str]:
    facts = pipeline.config.model_dump(mode="json", exclude_none=True)
    facts["source"]["url"] = pipeline.endpoints.source_url
    file = folder / "wal2lake.yaml"
    file.write_text(yaml.safe_dump(facts))
    app = typer.Typer()
    app.command()(print_plan)
    result = CliRunner().invoke(app, ["--config", str(file), *arguments])
    return result.exit_code, result.output


def of_a_stranger(chain: Endpoints, source: Connection, schema: str) -> str:
    """Create a role that may read everything and owns nothing; return its URL."""
    source.execute(
        f"CREATE ROLE stranger LOGIN REPLICATION PASSWORD 'x';"
        f"GRANT USAGE ON SCHEMA {schema}, wal2lake TO stranger;"
        f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO stranger;"
        f"GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA wal2lake TO stranger".encode()
    )
    parts = urlsplit(chain.source_url)
    place = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=f"stranger:x@{place}").geturl()


def test_a_topic_is_emptied_and_its_offsets_go_on(chain: Endpoints) -> None:
    """It holds also for a compacted topic, whose policy is the same afterwards."""
    specs = [TopicSpec("many", {"cleanup.policy": "compact"}), TopicSpec("few")]
    ensure_topics(chain.kafka, specs)
    producer = Producer({"bootstrap.servers": chain.kafka.bootstrap})
    for name in ("many", "few"):
        for number in range(5):
            producer.produce(name, key=str(number), value=b"x")
    producer.flush(30)
    before = topic_ids(chain.kafka, ["many", "few"])

    assert empty_topic(chain.kafka, "many", before=3)
    assert empty_topic(chain.kafka, "few")
    assert not empty_topic(chain.kafka, "none")

    assert [first_offset(chain, name) for name in ("many", "few")] == [3, 5]
    assert end_offsets(chain.kafka, ["many", "few"]) == {"many": 5, "few": 5}
    assert topic_ids(chain.kafka, ["many", "few"]) == before
    ensure_topics(chain.kafka, specs)  # raises if the policy is another


def first_offset(chain: Endpoints, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": chain.kafka.bootstrap, "group.id": "test"})
    try:
        marks = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=20)
    finally:
        consumer.close()
    assert marks is not None
    return int(marks[0])
