"""A standby, and a promoted standby, are reported as such."""

from pathlib import Path

import pytest

from cdc.errors import CdcError, ErrorKind, Reason
from cdc.source.server.connection import connect
from cdc.source.server.origin import origin, refuse_other
from cdc.source.setup.preflight import server_findings
from tests.servers.process import ProcessServer
from tests.servers.process import servers as processes
from tests.waiting import until

pytestmark = pytest.mark.integration


def test_a_standby_is_refused_and_a_promoted_one_is_another_source(tmp_path: Path) -> None:
    server = processes(tmp_path)["postgres"]()
    assert isinstance(server, ProcessServer)
    try:
        server.start()
        with connect(server.address) as connection:
            before = origin(connection)
        server.stop()
        (server.state.data("postgres") / "standby.signal").touch()
        server.start()
        with connect(server.address) as connection:
            said = [(each.subject, each.message) for each in server_findings(connection)]
            assert ("server", "is a standby") in said
            assert connection.execute("SELECT pg_promote()").fetchone() == (True,)
            until(lambda: origin(connection).timeline != before.timeline, 60)
            with pytest.raises(CdcError) as caught:
                refuse_other(before, origin(connection), reached=0)
            assert (caught.value.kind, caught.value.reason) == (
                ErrorKind.CHAIN_BROKEN,
                Reason.SOURCE_PROMOTED,
            )
    finally:
        server.stop()
