"""What breaks the chain from source to topics is refused by name, and never gone on from."""

from functools import partial
from pathlib import Path

import httpx
import pytest

from cdc.capture.bootstrap import establish
from cdc.capture.continuity import stored_lsn
from cdc.capture.exclude_unreadable import refuse_moved
from cdc.capture.source_watch import SourceWatch
from cdc.config import Config
from cdc.errors import CdcError, ErrorKind, Reason
from cdc.kafka.topics import topic_ids
from cdc.source.connector import worker_rest
from cdc.source.server import slot
from cdc.source.server.connection import Connection
from cdc.source.server.origin import origin
from cdc.state.endpoints import Endpoints
from cdc.state.pipeline import Pipeline
from cdc.waiting import until
from tests.servers.fixtures import on_containers
from tests.source.conftest import Maker
from tests.source.connector_tasks import tasks
from tests.source.topic import Topic, ops

pytestmark = pytest.mark.integration


def refusal(pipeline: Pipeline) -> CdcError:
    with pytest.raises(CdcError) as caught:
        establish(pipeline)
    return caught.value


def test_chain_broken(chain: Endpoints, source: Connection, make_config: Maker) -> None:
    config = make_config(chain)
    pipeline = Pipeline(config, chain)
    name = config.name
    source.execute("CREATE TABLE t (id int PRIMARY KEY)")
    source.execute("INSERT INTO t VALUES (1)")
    establish(pipeline)
    topic = Topic(chain, f"{name}.{name}.t")
    topic.until(lambda found: len(found) == 1)

    source.execute("CREATE TABLE late (id int PRIMARY KEY)")
    late = {"tables": [f"{name}.t", f"{name}.late"]}
    named = config.model_copy(update={"source": config.source.model_copy(update=late)})
    for wanted in (named, config):  # a new table waits, named literally or by a pattern
        assert [str(table.table) for table in establish(Pipeline(wanted, chain))] == [f"{name}.t"]

    worker_rest.stop(chain.connect, name)
    until(lambda: not slot.is_read(source, name), 30, "still in use")
    slot.drop(source, name)
    error = refusal(pipeline)
    assert error.kind is ErrorKind.CHAIN_BROKEN
    assert f"slot {name} is gone" in error.message

    worker_rest.forget_offsets(chain.connect, name)
    error = refusal(pipeline)
    assert error.kind is ErrorKind.CHAIN_BROKEN
    assert "position is lost" in error.message
    assert ops(topic.events()) == ["r"]  # nothing of it was sent


def test_slot_recreated(chain: Endpoints, source: Connection, make_config: Maker) -> None:
    """Changes made while there was no slot are lost, so the connector must not continue."""
    config = make_config(chain)
    pipeline = Pipeline(config, chain)
    name = config.name
    source.execute("CREATE TABLE t (id int PRIMARY KEY)")
    establish(pipeline)
    source.execute("INSERT INTO t VALUES (1)")
    topic = Topic(chain, f"{name}.{name}.t")
    topic.until(lambda found: ops(found) == ["c"])
    worker_rest.stop(chain.connect, name)
    until(lambda: not slot.is_read(source, name), 30, "still in use")
    slot.drop(source, name)
    source.execute("INSERT INTO t VALUES (2)")
    source.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", (name,))
    source.execute("INSERT INTO t VALUES (3)")
    error = refusal(pipeline)
    assert error.kind is ErrorKind.CHAIN_BROKEN
    assert "was recreated" in error.message
    # The connector's own check agrees if the job's supervisor starts it without ours.
    worker_rest.resume(chain.connect, name)
    until(lambda: "FAILED" in tasks(chain, name), 60, "the connector went on")
    assert ops(topic.events()) == ["c"]


def test_a_slot_that_others_move_on_ends_the_job(
    chain: Endpoints, source: Connection, make_config: Maker
) -> None:
    """The connector continues from there. While it alone moves the slot, nothing is reported."""
    config = make_config(chain)
    pipeline = Pipeline(config, chain)
    name = config.name
    source.execute("CREATE TABLE t (id int PRIMARY KEY)")
    establish(pipeline)
    topic = Topic(chain, f"{name}.{name}.t")
    asked = partial(stored_lsn, chain.connect, name)
    looking = SourceWatch(chain.source_url, name, origin(source), asked)
    for number in range(1, 6):
        before = _confirmed(source, name)
        source.execute("INSERT INTO t VALUES (%s)", (number,))
        topic.until(lambda found: len(found) >= number)  # noqa: B023 - is called at once
        until(lambda: _looked(looking) and _confirmed(source, name) > before, 60, "stands")  # noqa: B023
    worker_rest.stop(chain.connect, name)
    until(lambda: not slot.is_read(source, name), 30, "still in use")
    assert _looked(looking)
    source.execute("INSERT INTO t VALUES (6)")
    source.execute("SELECT pg_replication_slot_advance(%s, pg_current_wal_lsn())", (name,))
    with pytest.raises(CdcError) as caught:
        until(lambda: not _looked(looking), 30, "nothing was noticed")
    assert caught.value.reason is Reason.SLOT_RECREATED
    assert refusal(pipeline).reason is Reason.SLOT_RECREATED
    with pytest.raises(CdcError) as caught:
        refuse_moved(pipeline)  # as the supervisor does before it restarts a failed one
    assert caught.value.reason is Reason.SLOT_RECREATED
    source.execute("INSERT INTO t VALUES (7)")
    worker_rest.resume(chain.connect, name)
    events = topic.until(lambda found: len(found) >= 6)
    assert [value["after"]["id"] for _, value in events] == [1, 2, 3, 4, 5, 7]
    with pytest.raises(CdcError):
        looking.look(0)
    looking.close()


def _looked(looking: SourceWatch) -> bool:
    looking.look(0)
    return True


def _confirmed(connection: Connection, name: str) -> int:
    state = slot.slot_state(connection, name)
    return (state.confirmed_lsn if state else None) or 0


def test_snapshot_interrupted(
    chain: Endpoints,
    chain_state: Path,
    source: Connection,
    make_config: Maker,
    request: pytest.FixtureRequest,
) -> None:
    """It starts over from scratch: a row deleted in between must not remain."""
    if on_containers(request):
        pytest.skip("only an embedded worker's topics are begun again")
    config = make_config(chain)
    name = config.name
    source.execute("CREATE TABLE t (id int PRIMARY KEY)")
    source.execute("INSERT INTO t VALUES (1), (2)")
    establish(Pipeline(config, chain))
    topic = Topic(chain, f"{name}.{name}.t")
    topic.until(lambda found: ops(found) == ["r", "r"])
    before = topic_ids(chain.kafka, [topic.name])
    worker_rest.stop(chain.connect, name)
    _mark_unfinished(chain, name)
    source.execute("DELETE FROM t WHERE id = 2")
    establish(Pipeline(_embedded_worker(config, chain_state), chain))
    events = topic.until(lambda found: len(found) >= 1)
    assert [value["after"]["id"] for _, value in events] == [1]
    assert topic_ids(chain.kafka, [topic.name]) != before


def _mark_unfinished(chain: Endpoints, name: str) -> None:
    """Set the position that the connector stores in the middle of its first snapshot."""
    url = f"{chain.connect}/connectors/{name}/offsets"
    (entry,) = httpx.get(url).raise_for_status().json()["offsets"]
    entry["offset"] |= {"snapshot": "INITIAL", "snapshot_completed": False}
    httpx.patch(url, json={"offsets": [entry]}).raise_for_status()


def _embedded_worker(config: Config, state: Path) -> Config:
    """Pretend that the worker is embedded: only then is an interrupted snapshot recognized."""
    own = config.connect.model_copy(update={"url": None})
    return config.model_copy(update={"connect": own, "state_dir": state})
