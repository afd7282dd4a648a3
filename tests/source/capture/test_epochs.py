"""A broken chain starts a new epoch on the same topics, by streaming; an intact one does not."""

from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, write_deltalake

from cdc.capture.bootstrap import establish
from cdc.capture.continuity import in_first_snapshot
from cdc.config import Config
from cdc.errors import CdcError, ErrorKind
from cdc.events.structure.structure import parse
from cdc.kafka.offsets import end_offsets
from cdc.kafka.topics import topic_ids
from cdc.lake import lock
from cdc.lake.layout import epochs_path, log_path
from cdc.lake.records import epochs
from cdc.lake.table.positions import LandedPosition
from cdc.source.connector import worker_rest
from cdc.source.connector.settings import SNAPSHOT_MODE, STREAM_ONLY
from cdc.source.server import slot
from cdc.source.server.connection import Connection
from cdc.state.endpoints import Endpoints
from cdc.state.pipeline import Pipeline
from cdc.tables import STRUCTURE
from cdc.waiting import until
from tests.source.conftest import Maker
from tests.source.positions import mark_unfinished
from tests.source.topic import Topic, ops

pytestmark = pytest.mark.integration


def refusal(pipeline: Pipeline, *, new_epoch: bool = False) -> CdcError:
    with pytest.raises(CdcError) as caught:
        establish(pipeline, new_epoch=new_epoch)
    return caught.value


def begun(pipeline: Pipeline, source: Connection) -> Topic:
    """Start a chain and have it send one row by snapshot and one by the stream."""
    source.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
    source.execute("INSERT INTO t VALUES (1, 'snapshot')")
    establish(pipeline)
    topic = Topic(pipeline.endpoints, f"{pipeline.name}.{pipeline.name}.t")
    topic.until(lambda found: ops(found) == ["r"])
    source.execute("INSERT INTO t VALUES (2, 'stream')")
    topic.until(lambda events: ops(events) == ["r", "c"])
    return topic


def drop_slot(pipeline: Pipeline, source: Connection) -> None:
    worker_rest.stop(pipeline.endpoints.connect, pipeline.name)
    until(lambda: not slot.is_read(source, pipeline.name), 30, "still in use")
    slot.drop(source, pipeline.name)


def mode(pipeline: Pipeline) -> str:
    settings = worker_rest.configuration(pipeline.endpoints.connect, pipeline.name) or {}
    return settings[SNAPSHOT_MODE]


def ids(events: list[Any]) -> list[int]:
    return [value["after"]["id"] for _, value in events]


def test_a_new_epoch_continues_the_topics_after_a_dropped_slot(
    chain: Endpoints, source: Connection, make_config: Maker
) -> None:
    """The topics continue, no snapshot is taken, and later starts continue the same way."""
    config = make_config(chain)
    pipeline = Pipeline(config, chain)
    topic = begun(pipeline, source)
    kafka_id = topic_ids(chain.kafka, [topic.name])
    drop_slot(pipeline, source)
    source.execute("INSERT INTO t VALUES (3, 'lost')")
    error = refusal(pipeline)
    assert error.kind is ErrorKind.CHAIN_BROKEN
    assert error.policy.exit_code == 12
    assert "wal2lake up --new-epoch" in error.remedy
    before = end_offsets(chain.kafka, [topic.name, f"{config.name}.transaction"])

    establish(pipeline, new_epoch=True)

    source.execute("INSERT INTO t VALUES (4, 'after')")
    assert ids(topic.until(lambda events: len(events) >= 3)) == [1, 2, 4]
    assert ops(topic.events()) == ["r", "c", "c"]
    assert topic_ids(chain.kafka, [topic.name]) == kafka_id
    epoch = epochs.last(epochs_path(config))
    assert epoch is not None
    assert epoch.number == 2
    assert "is gone" in epoch.reason
    assert epoch.left_behind_of_table(f"{config.name}.t") == before[topic.name] - 1
    assert epoch.left_behind_markers == before[f"{config.name}.transaction"] - 1
    assert mode(pipeline) == STREAM_ONLY

    worker_rest.delete(chain.connect, config.name)  # the worker keeps its position
    establish(pipeline)
    source.execute("INSERT INTO t VALUES (5, 'after a start')")
    assert ids(topic.until(lambda found: len(found) >= 4)) == [1, 2, 4, 5]
    assert mode(pipeline) == STREAM_ONLY
    assert epochs.last(epochs_path(config)) == epoch


def test_a_plain_start_begins_an_epoch_if_tables_are_to_be_read_again(
    chain: Endpoints, source: Connection, make_config: Maker
) -> None:
    """With ``source.on_lost_changes`` a plain start begins the epoch; the next continues it."""
    config = make_config(chain, on_lost_changes="read_again")
    pipeline = Pipeline(config, chain)
    topic = begun(pipeline, source)
    drop_slot(pipeline, source)

    establish(pipeline)

    epoch = epochs.last(epochs_path(config))
    assert epoch is not None
    assert "is gone" in epoch.reason
    source.execute("INSERT INTO t VALUES (4, 'after')")
    assert ids(topic.until(lambda found: len(found) >= 3)) == [1, 2, 4]
    establish(pipeline)
    assert epochs.last(epochs_path(config)) == epoch


def test_a_lake_of_another_pipeline_is_refused_until_an_epoch_begins(
    chain: Endpoints, source: Connection, make_config: Maker
) -> None:
    """The tables have offsets of other topics; a new epoch under the new name works."""
    config = make_config(chain, on_lost_changes="read_again")
    pipeline = Pipeline(config, chain)
    begun(pipeline, source)
    create_log(config)
    other = config.model_copy(update={"name": "another"})

    error = refusal(Pipeline(other, chain))

    assert error.kind is ErrorKind.CHAIN_BROKEN
    assert f"belongs to pipeline {config.name}, not to another" in error.message
    assert f"drop slot {config.name}" in error.remedy
    assert worker_rest.offsets(chain.connect, "another") is None
    drop_slot(pipeline, source)
    try:
        establish(Pipeline(other, chain), new_epoch=True)
        epoch = epochs.last(epochs_path(config))
        assert epoch is not None
        assert (epoch.name, epoch.left_behind_of_table(f"{config.name}.t")) == ("another", -1)
        assert epoch.left_behind[f"another.{config.name}.t"] == -1
        source.execute("INSERT INTO t VALUES (5, 'of the other')")
        topic = Topic(chain, f"another.{config.name}.t")
        assert ids(topic.until(lambda found: len(found) >= 1)) == [5]
        assert refusal(pipeline).kind is ErrorKind.CHAIN_BROKEN
    finally:
        worker_rest.delete(chain.connect, "another")


def create_log(config: Config) -> None:
    """Create a log whose newest commit has an event of this pipeline."""
    topic = f"{config.name}.{config.name}.t"
    position = LandedPosition(
        epoch=1, landing=1, offsets={topic: 1}, topic_ids={topic: "of the first"}
    )
    write_deltalake(
        log_path(config),
        pa.table({"landing": [1]}),
        commit_properties=CommitProperties(custom_metadata={"userMetadata": position.metadata()}),
    )


def test_a_new_epoch_notes_all_structures(
    chain: Endpoints, source: Connection, make_config: Maker
) -> None:
    """The notes arrive in the stream of the new epoch, with the current structures."""
    config = make_config(chain)
    pipeline = Pipeline(config, chain)
    begun(pipeline, source)
    drop_slot(pipeline, source)
    source.execute("ALTER TABLE t ADD w int")
    notes = Topic(chain, STRUCTURE.topic(config.name))
    before = len(notes.events())

    establish(pipeline, new_epoch=True)

    def noted() -> list[list[str]]:
        values = [value for _, value in notes.events()[before:] if value]
        mine = [v["after"] for v in values if v["after"]["table_schema"] == config.name]
        return [[c.name for c in parse(row["structure"]).columns] for row in mine]

    until(lambda: noted() == [["id", "v", "w"]], 60, "no note came")


def test_an_interrupted_beginning_of_an_epoch_is_refused_and_repeated(
    chain: Endpoints,
    source: Connection,
    make_config: Maker,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After any interruption a plain start refuses, and the next attempt begins the same epoch."""
    config = make_config(chain)
    pipeline = Pipeline(config, chain)
    topic = begun(pipeline, source)
    drop_slot(pipeline, source)
    for name in (
        "cdc.source.server.slot.drop",
        "cdc.lake.records.epochs.begin",
        "cdc.source.server.slot.probe",
    ):
        with monkeypatch.context() as patch:
            patch.setattr(name, interrupted)
            with pytest.raises(KeyboardInterrupt):
                establish(pipeline, new_epoch=True)
        error = refusal(pipeline)
        assert error.kind is ErrorKind.CHAIN_BROKEN
        assert "position is lost" in error.message

    establish(pipeline, new_epoch=True)

    source.execute("INSERT INTO t VALUES (4, 'after')")
    assert ids(topic.until(lambda events: len(events) >= 3)) == [1, 2, 4]
    epoch = epochs.last(epochs_path(config))
    assert epoch is not None
    assert epoch.number == 2


def interrupted(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def test_a_new_epoch_replaces_a_connector_that_fails_for_good(
    chain: Endpoints, source: Connection, make_config: Maker
) -> None:
    """A value that does not fit the column's new type stops it for good (decision 0011)."""
    config = make_config(chain)
    pipeline = Pipeline(config, chain)
    topic = begun(pipeline, source)
    worker_rest.stop(chain.connect, config.name)
    source.execute("INSERT INTO t VALUES (3, 'no number')")
    source.execute("ALTER TABLE t ALTER v TYPE int USING 0")
    worker_rest.resume(chain.connect, config.name)

    establish(pipeline, new_epoch=True)

    source.execute("INSERT INTO t VALUES (4, 4)")
    events = topic.until(lambda events: len(events) >= 3)
    assert ids(events) == [1, 2, 4]
    assert events[-1][1]["after"]["v"] == 4
    epoch = epochs.last(epochs_path(config))
    assert epoch is not None
    assert "fails" in epoch.reason


def test_a_new_epoch_ends_an_unfinished_first_snapshot(
    chain: Endpoints, source: Connection, make_config: Maker
) -> None:
    """Its events remain; the rows that it had not read must be read from the source."""
    config = make_config(chain)
    pipeline = Pipeline(config, chain)
    topic = begun(pipeline, source)
    worker_rest.stop(chain.connect, config.name)
    mark_unfinished(pipeline)

    establish(pipeline, new_epoch=True)

    source.execute("INSERT INTO t VALUES (3, 'after')")
    assert ids(topic.until(lambda events: len(events) >= 3)) == [1, 2, 3]
    assert ops(topic.events()) == ["r", "c", "c"]
    epoch = epochs.last(epochs_path(config))
    assert epoch is not None
    assert epoch.reason == "the first snapshot was not finished"
    position = worker_rest.offsets(chain.connect, config.name)
    assert position is not None
    assert not in_first_snapshot(position)


def test_an_intact_chain_is_kept(chain: Endpoints, source: Connection, make_config: Maker) -> None:
    """The same is true of a chain that a running job follows."""
    config = make_config(chain)
    pipeline = Pipeline(config, chain)
    topic = begun(pipeline, source)
    error = refusal(pipeline, new_epoch=True)
    assert error.kind is ErrorKind.CONFLICT
    assert "nothing is broken" in error.message
    with lock.only_job(config):
        assert refusal(pipeline, new_epoch=True).kind is ErrorKind.CONFLICT
    source.execute("INSERT INTO t VALUES (3, 'goes on')")
    assert ids(topic.until(lambda events: len(events) >= 3)) == [1, 2, 3]
    assert epochs.last(epochs_path(config)) is None
    assert mode(pipeline) == "initial"


def test_a_lake_that_does_not_have_the_epoch_is_refused(
    chain: Endpoints, source: Connection, make_config: Maker
) -> None:
    """Such a lake would treat the topics as complete."""
    config = make_config(chain)
    pipeline = Pipeline(config, chain)
    begun(pipeline, source)
    drop_slot(pipeline, source)
    establish(pipeline, new_epoch=True)
    other = config.lake.model_copy(update={"path": f"{config.lake.path}_other"})
    error = refusal(Pipeline(config.model_copy(update={"lake": other}), chain))
    assert error.kind is ErrorKind.CHAIN_BROKEN
    assert "does not know" in error.message
