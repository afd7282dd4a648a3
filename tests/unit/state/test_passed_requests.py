"""Requests for a cut that can no longer come hold nothing up and are forgotten."""

from pathlib import Path

from cdc.apply.rounds.cut_requests import CutRequests
from cdc.state import requests
from cdc.state.request_reader import RequestReader
from cdc.state.requests import Request


def test_requests_before_the_last_cut_hold_nothing_and_served_ones_are_forgotten(
    tmp_path: Path,
) -> None:
    for name, bound in (("passed", 99), ("at", 100), ("beyond", 101), ("hold", None)):
        requests.write(tmp_path, Request(id=name, expires_at=2e10, bound=bound))
    waiting = CutRequests(RequestReader(tmp_path))
    for name in ("at", "gone"):
        waiting.mark_served(Request(id=name, expires_at=2e10))

    assert [request.id for request in waiting.pending(100)] == ["beyond", "hold"]
    assert waiting._served == {"at"}
