"""A request about a derived table holds until it is ended, and is of one kind."""

from pathlib import Path

from cdc.state.derived_requests import pauses, rebuilds
from cdc.tables import TableId


def test_a_request_holds_until_it_is_ended(tmp_path: Path) -> None:
    requests = rebuilds(tmp_path)
    odd, other = TableId("a/b", "..\nc"), TableId("a", "b")
    requests.ask(odd)
    requests.ask(odd)

    assert (requests.is_asked(odd), requests.is_asked(other)) == (True, False)
    assert not pauses(tmp_path).is_asked(odd)
    requests.done(odd)
    requests.done(odd)
    assert not requests.is_asked(odd)
