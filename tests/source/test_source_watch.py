"""The source as the running job looks at it: the same, another state of it, or away."""

from collections.abc import Iterator

import pytest

from cdc.errors import CdcError, ErrorKind, Reason
from cdc.source import slot, watch
from cdc.source.origin import Origin, origin
from cdc.source.postgres import Connection, connect
from cdc.source.watch import SourceWatch
from tests.servers.fixtures import Makers
from tests.servers.server import Server

pytestmark = pytest.mark.integration

NAME = "watched"


@pytest.fixture
def server(servers: Makers) -> Server:
    found = servers["postgres"]()
    found.start()
    with connect(found.address) as connection:
        connection.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", (NAME,))
    return found


@pytest.fixture
def connection(server: Server) -> Iterator[Connection]:
    with connect(server.address) as found:
        yield found


@pytest.fixture
def looking(server: Server, connection: Connection) -> Iterator[SourceWatch]:
    found = SourceWatch(server.address, NAME, origin(connection))
    yield found
    found.close()


def refusal(looking: SourceWatch, reached: int = 0) -> CdcError:
    with pytest.raises(CdcError) as caught:
        looking.look(reached)
    assert caught.value.kind is ErrorKind.CHAIN_BROKEN
    return caught.value


def test_the_same_source(looking: SourceWatch, connection: Connection) -> None:
    looking.look(0)
    looking.look(origin(connection).lsn)


def test_a_role_without_rights_may_ask(server: Server, connection: Connection) -> None:
    connection.execute("CREATE ROLE plain LOGIN PASSWORD 'plain'")
    with connect(server.address, user="plain", password="plain") as plain:
        assert origin(plain).system == origin(connection).system


def test_timeline_and_end_are_those_of_the_control_file(connection: Connection) -> None:
    """Which is written by a checkpoint, and asked by nobody else."""
    found = origin(connection)
    row = connection.execute(
        "SELECT timeline_id, (checkpoint_lsn - '0/0'::pg_lsn)::bigint FROM pg_control_checkpoint()"
    ).fetchone()
    assert row is not None
    assert found.timeline == row[0]
    assert found.lsn > row[1]


def test_a_source_whose_wal_ends_too_early(looking: SourceWatch, connection: Connection) -> None:
    error = refusal(looking, origin(connection).lsn + 2**30)
    assert error.reason is Reason.SOURCE_RESTORED


def test_another_cluster_and_another_timeline(server: Server, connection: Connection) -> None:
    now = origin(connection)
    for known, reason in (
        (Origin(system="1", timeline=now.timeline), Reason.SOURCE_REPLACED),
        (Origin(system=now.system, timeline=now.timeline + 1), Reason.SOURCE_PROMOTED),
    ):
        looking = SourceWatch(server.address, NAME, known)
        try:
            assert refusal(looking).reason is reason
        finally:
            looking.close()


def test_a_slot_that_is_gone(looking: SourceWatch, connection: Connection) -> None:
    looking.look(0)
    slot.drop(connection, NAME)
    assert refusal(looking).reason is Reason.SLOT_GONE


def test_a_source_that_is_away_is_asked_again(
    server: Server, looking: SourceWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "_AGAIN_SECONDS", 0.0)
    looking.look(0)
    server.kill()
    looking.look(2**60)  # nobody can tell
    looking.look(2**60)
    server.start()
    looking.look(0)
    assert refusal(looking, 2**60).reason is Reason.SOURCE_RESTORED
