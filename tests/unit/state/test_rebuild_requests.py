"""A request to calculate a table anew waits until the job has done it."""

from pathlib import Path

from cdc.state.rebuild_requests import RebuildRequests
from cdc.tables import TableId


def test_a_request_waits_until_it_is_done(tmp_path: Path) -> None:
    requests = RebuildRequests(tmp_path)
    odd, other = TableId("a/b", "..\nc"), TableId("a", "b")
    requests.ask(odd)
    requests.ask(odd)

    assert (requests.is_asked(odd), requests.is_asked(other)) == (True, False)
    requests.done(odd)
    requests.done(odd)
    assert not requests.is_asked(odd)
