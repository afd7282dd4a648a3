"""Tables that no cut waits for are calculated by a thread that leaves the cores to others."""

import os
import sys
from contextlib import closing

import pytest

from cdc.derive.step.step import Bringing
from tests.unit.derive.orders import BY_WHO, order
from tests.unit.derive.small_lake import SmallLake


@pytest.mark.skipif(sys.platform != "linux", reason="the priority of a thread is Linux's")
def test_only_what_no_cut_waits_for_yields(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = os.getpriority(os.PRIO_PROCESS, 0)
    found, steps = [], Bringing.steps

    def watched(self: Bringing, *given: object, **named: object) -> object:
        found.append(os.getpriority(os.PRIO_PROCESS, 0))
        return steps(self, *given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(Bringing, "steps", watched)
    with closing(lake.keep(BY_WHO, seconds=0)) as kept:
        for number in range(3):
            lake.set(orders=[order(number, "a")], people=[])
            kept.entries(lake.row())
            work = kept._work
            assert work is not None
            work.result()

    assert found[0] == mine
    assert all(niceness > mine for niceness in found[1:])
    assert len(found) == 3
    assert os.getpriority(os.PRIO_PROCESS, 0) == mine
