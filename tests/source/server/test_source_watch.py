"""Test how a running job sees its source: unchanged, replaced, restored or unreachable."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from cdc.capture import source_watch
from cdc.capture.source_watch import SourceWatch
from cdc.errors import CdcError, ErrorKind, Reason
from cdc.source.server import slot
from cdc.source.server.connection import Connection, connect
from cdc.source.server.origin import Origin, origin
from cdc.waiting import until
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
    found = SourceWatch(server.address, NAME, origin(connection), lambda: 0)
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
    """Postgres writes it at a checkpoint."""
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
        looking = SourceWatch(server.address, NAME, known, lambda: 0)
        try:
            assert refusal(looking).reason is reason
        finally:
            looking.close()


def test_a_slot_that_is_gone(looking: SourceWatch, connection: Connection) -> None:
    looking.look(0)
    slot.drop(connection, NAME)
    assert refusal(looking).reason is Reason.SLOT_GONE


@dataclass
class Stored:
    """A connector's position as its worker would report it, and the number of requests."""

    lsn: int
    asked: int = 0

    def __call__(self) -> int:
        found = self.lsn
        self.asked += 1
        return found


@pytest.fixture
def following(server: Server, connection: Connection) -> Iterator[tuple[SourceWatch, Stored]]:
    """A look at a slot that is at its connector's position."""
    stored = Stored(confirmed(connection))
    found = SourceWatch(server.address, NAME, origin(connection), stored)
    until(lambda: looked(found) and stored.asked > 0, 30, "it does not look")
    yield found, stored
    found.close()


def confirmed(connection: Connection) -> int:
    state = slot.slot_state(connection, NAME)
    assert state is not None
    return state.confirmed_lsn or 0


def looked(looking: SourceWatch) -> bool:
    looking.look(0)
    return True


def moved_on(connection: Connection) -> int:
    connection.execute("CREATE TABLE public.t (); DROP TABLE public.t")
    connection.execute("SELECT pg_replication_slot_advance(%s, pg_current_wal_lsn())", (NAME,))
    return confirmed(connection)


def consumed(connection: Connection) -> int:
    connection.execute("CREATE TABLE public.t (); DROP TABLE public.t; CREATE PUBLICATION p")
    connection.execute(
        "SELECT pg_logical_slot_get_binary_changes(%s, NULL, NULL, 'proto_version', '1',"
        " 'publication_names', 'p')",
        (NAME,),
    )
    return confirmed(connection)


@pytest.mark.parametrize("others", [moved_on, consumed])
def test_a_slot_that_somebody_else_moved_on(
    connection: Connection,
    following: tuple[SourceWatch, Stored],
    others: Callable[[Connection], int],
) -> None:
    """It is remembered even when the connector has continued from there."""
    looking, stored = following
    looking.look(0)
    asked = stored.asked
    assert others(connection) > stored.lsn
    until(lambda: stored.asked > asked, 30, "it does not look")
    stored.lsn = 2**60
    with pytest.raises(CdcError) as caught:
        until(lambda: not looked(looking), 30, "it was not noticed")
    assert caught.value.reason is Reason.SLOT_RECREATED
    assert refusal(looking).reason is Reason.SLOT_RECREATED


def test_a_slot_whose_connector_cannot_be_asked(
    connection: Connection, following: tuple[SourceWatch, Stored]
) -> None:
    looking, stored = following
    stored.lsn = 0
    moved_on(connection)
    asked = stored.asked
    until(lambda: stored.asked > asked + 1, 30, "it does not look")
    looking.look(0)


def test_a_source_that_is_away_is_asked_again(
    server: Server, looking: SourceWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_watch, "_AGAIN_SECONDS", 0.0)
    looking.look(0)
    server.kill()
    looking.look(2**60)  # cannot be known
    looking.look(2**60)
    server.start()
    looking.look(0)
    assert refusal(looking, 2**60).reason is Reason.SOURCE_RESTORED
