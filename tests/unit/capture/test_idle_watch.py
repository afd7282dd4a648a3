"""While no cut is due, the source is asked now and then, and its slot is watched all the time."""

import pytest

from cdc.capture import source_watch
from cdc.capture.source_watch import SourceWatch
from cdc.source.server.origin import Origin
from cdc.source.server.slot_watch import SlotWatch


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what a watch asks, in order, without a server."""
    calls: list[str] = []
    monkeypatch.setattr(SlotWatch, "refuse", lambda _: calls.append("slot"))
    monkeypatch.setattr(SourceWatch, "_look", lambda _, reached: calls.append(f"source {reached}"))
    return calls


def watch() -> SourceWatch:
    return SourceWatch("", "name", Origin(system="1", timeline=1), lambda: 0)


def test_an_idle_job_asks_the_source_now_and_then(
    asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_watch, "IDLE_SECONDS", 3600.0)
    idle = watch()
    for lsn in (1, 2, 3):
        idle.look_now_and_then(lsn)
    assert [call for call in asked if call != "slot"] == ["source 1"]
    assert asked.count("slot") >= 3


def test_it_asks_again_after_the_pause(asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_watch, "IDLE_SECONDS", 0.0)
    idle = watch()
    for lsn in (1, 2):
        idle.look_now_and_then(lsn)
    assert [call for call in asked if call != "slot"] == ["source 1", "source 2"]


def test_a_cut_asks_each_time(asked: list[str]) -> None:
    before_cut = watch()
    before_cut.look_now_and_then(1)
    before_cut.look(2)
    before_cut.look(3)
    assert [call for call in asked if call != "slot"] == ["source 1", "source 2", "source 3"]
