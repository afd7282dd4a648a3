"""A running job notices that its source was replaced, restored, promoted or is unreachable."""

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
    server = servers["postgres"]()
    server.start()
    with connect(server.address) as connection:
        connection.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", (NAME,))
    return server


@pytest.fixture
def connection(server: Server) -> Iterator[Connection]:
    with connect(server.address) as session:
        yield session


@pytest.fixture
def watch(server: Server, connection: Connection) -> Iterator[SourceWatch]:
    watch = SourceWatch(server.address, NAME, origin(connection), lambda: 0)
    yield watch
    watch.close()


def refusal(watch: SourceWatch, reached: int = 0) -> CdcError:
    with pytest.raises(CdcError) as caught:
        watch.look(reached)
    assert caught.value.kind is ErrorKind.CHAIN_BROKEN
    return caught.value


def test_an_unchanged_source_is_accepted(watch: SourceWatch, connection: Connection) -> None:
    watch.look(0)
    watch.look(origin(connection).lsn)


def test_a_role_without_rights_can_identify_the_source(
    server: Server, connection: Connection
) -> None:
    connection.execute("CREATE ROLE plain LOGIN PASSWORD 'plain'")
    with connect(server.address, user="plain", password="plain") as plain:
        assert origin(plain).system == origin(connection).system


def test_timeline_and_wal_end_match_the_control_file(connection: Connection) -> None:
    """Postgres writes the control file at a checkpoint."""
    shown = origin(connection)
    row = connection.execute(
        "SELECT timeline_id, (checkpoint_lsn - '0/0'::pg_lsn)::bigint FROM pg_control_checkpoint()"
    ).fetchone()
    assert row is not None
    assert shown.timeline == row[0]
    assert shown.lsn > row[1]


def test_a_source_whose_wal_ends_too_early_was_restored(
    watch: SourceWatch, connection: Connection
) -> None:
    error = refusal(watch, origin(connection).lsn + 2**30)
    assert error.reason is Reason.SOURCE_RESTORED


def test_another_cluster_or_another_timeline_is_refused(
    server: Server, connection: Connection
) -> None:
    now = origin(connection)
    for known, reason in (
        (Origin(system="1", timeline=now.timeline), Reason.SOURCE_REPLACED),
        (Origin(system=now.system, timeline=now.timeline + 1), Reason.SOURCE_PROMOTED),
    ):
        watch = SourceWatch(server.address, NAME, known, lambda: 0)
        try:
            assert refusal(watch).reason is reason
        finally:
            watch.close()


def test_a_dropped_slot_is_refused(watch: SourceWatch, connection: Connection) -> None:
    watch.look(0)
    slot.drop(connection, NAME)
    assert refusal(watch).reason is Reason.SLOT_GONE


@dataclass
class Stored:
    """Tells a connector's position as its worker would report it, and counts the requests."""

    lsn: int
    asked: int = 0

    def __call__(self) -> int:
        lsn = self.lsn
        self.asked += 1
        return lsn


@pytest.fixture
def following(server: Server, connection: Connection) -> Iterator[tuple[SourceWatch, Stored]]:
    """Return a watch of a slot that is at its connector's position."""
    stored = Stored(confirmed(connection))
    watch = SourceWatch(server.address, NAME, origin(connection), stored)
    until(lambda: look(watch) and stored.asked > 0, 30, "it does not look")
    yield watch, stored
    watch.close()


def confirmed(connection: Connection) -> int:
    state = slot.slot_state(connection, NAME)
    assert state is not None
    return state.confirmed_lsn or 0


def look(watch: SourceWatch) -> bool:
    """Look at the source; raise if the chain is broken."""
    watch.look(0)
    return True


def advance_slot(connection: Connection) -> int:
    """Advance the slot, as somebody else might; return its position."""
    connection.execute("CREATE TABLE public.t (); DROP TABLE public.t")
    connection.execute("SELECT pg_replication_slot_advance(%s, pg_current_wal_lsn())", (NAME,))
    return confirmed(connection)


def consume_slot(connection: Connection) -> int:
    """Read the slot's changes, as somebody else might; return its position."""
    connection.execute("CREATE TABLE public.t (); DROP TABLE public.t; CREATE PUBLICATION p")
    connection.execute(
        "SELECT pg_logical_slot_get_binary_changes(%s, NULL, NULL, 'proto_version', '1',"
        " 'publication_names', 'p')",
        (NAME,),
    )
    return confirmed(connection)


@pytest.mark.parametrize("move", [advance_slot, consume_slot])
def test_a_slot_that_somebody_else_moved_is_refused(
    connection: Connection,
    following: tuple[SourceWatch, Stored],
    move: Callable[[Connection], int],
) -> None:
    """The move is remembered even if the connector has continued from there."""
    watch, stored = following
    watch.look(0)
    asked = stored.asked
    assert move(connection) > stored.lsn
    until(lambda: stored.asked > asked, 30, "it does not look")
    stored.lsn = 2**60
    with pytest.raises(CdcError) as caught:
        until(lambda: not look(watch), 30, "it was not noticed")
    assert caught.value.reason is Reason.SLOT_RECREATED
    assert refusal(watch).reason is Reason.SLOT_RECREATED


def test_a_moved_slot_is_accepted_while_the_connector_s_position_is_unknown(
    connection: Connection, following: tuple[SourceWatch, Stored]
) -> None:
    watch, stored = following
    stored.lsn = 0
    advance_slot(connection)
    asked = stored.asked
    until(lambda: stored.asked > asked + 1, 30, "it does not look")
    watch.look(0)


def test_a_source_that_is_away_is_asked_again(
    server: Server, watch: SourceWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_watch, "_AGAIN_SECONDS", 0.0)
    watch.look(0)
    server.kill()
    watch.look(2**60)  # the end of the WAL is unknown
    watch.look(2**60)
    server.start()
    watch.look(0)
    assert refusal(watch, 2**60).reason is Reason.SOURCE_RESTORED
