"""Tests that each fault gives the first cause that explains it, with a remedy."""

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.observe.causes import Facts, SlotFacts, cause
from cdc.observe.hop_motion import Hop

SLOT = SlotFacts(
    exists=True, pid=7, application="Debezium Streaming", waits_for="WalSenderWaitForWal"
)
WELL = Facts(
    silent={},
    slot=SLOT,
    connector=("RUNNING", ""),
    restarted="",
    missing=(),
    unended=False,
    alarm="",
    held=(),
    merging=(),
    disk="",
)
FAULTS: list[tuple[Hop, dict[str, Any], str, str]] = [
    (Hop.CAPTURE, {"silent": {"kafka": "no broker answers"}}, "no broker answers", "Kafka runs"),
    (Hop.CAPTURE, {"silent": {"source": "gone"}, "slot": None}, "gone", "Postgres runs"),
    (Hop.CAPTURE, {"silent": {"connect": "no worker"}, "connector": None}, "no worker", "worker"),
    (Hop.CAPTURE, {"silent": {"registry": "no registry"}}, "no registry", "registry runs"),
    (Hop.CAPTURE, {"missing": ("w.message",)}, "no topic w.message", "creates it"),
    (Hop.CAPTURE, {"connector": ("PAUSED", "")}, "is PAUSED", "start it again"),
    (Hop.CAPTURE, {"connector": ("STOPPED", "")}, "is STOPPED", "start it again"),
    (Hop.CAPTURE, {"connector": ("missing", "")}, "is missing", "start it again"),
    (Hop.CAPTURE, {"connector": ("FAILED", "no room")}, "FAILED: no room", "--new-epoch"),
    (Hop.CAPTURE, {"connector": ("UNASSIGNED", "")}, "UNASSIGNED", "worker's log"),
    (Hop.CAPTURE, {"restarted": "Topic x not present"}, "Topic x", "--new-epoch"),
    (Hop.CAPTURE, {"slot": SlotFacts(exists=False)}, "no slot", "says what is lost"),
    (Hop.CAPTURE, {"slot": replace(SLOT, lost=True)}, "slot was lost", "says what is lost"),
    (Hop.CAPTURE, {"slot": replace(SLOT, application="psql")}, "by pid 7 (psql)", "end that"),
    (
        Hop.CAPTURE,
        {"slot": replace(SLOT, has_publication=False), "connector": ("FAILED", "no room")},
        "no publication",
        "give it that name again",
    ),
    (Hop.CAPTURE, {"slot": replace(SLOT, pid=None)}, "nobody reads", "restart it"),
    (Hop.CAPTURE, {"slot": replace(SLOT, blocked_by="4, 5")}, "pid 4, 5", "pg_terminate"),
    (Hop.CAPTURE, {"slot": replace(SLOT, heartbeat_seconds=99)}, "for 99 s", "role"),
    (Hop.CAPTURE, {"slot": replace(SLOT, heartbeat_seconds=math.inf)}, "row is gone", "create the"),
    (
        Hop.CAPTURE,
        {"slot": replace(SLOT, waits_for="WalSenderWriteData")},
        "does not read",
        "worker's log",
    ),
    (Hop.CAPTURE, {}, "pid 7 sends nothing", "pg_terminate_backend(7)"),
    (Hop.CAPTURE, {"slot": None, "unended": True}, "never ended", "without an end"),
    (Hop.CAPTURE, {"slot": None}, "every part answers", "worker's log"),
    (Hop.CAPTURE, {"disk": "/lake has 1 MiB free"}, "1 MiB free", "free space"),
    (Hop.LAND, {"silent": {"kafka": "no broker answers"}}, "no broker answers", "Kafka runs"),
    (Hop.LAND, {"disk": "/lake has 1 MiB free"}, "1 MiB free", "free space"),
    (Hop.LAND, {}, "landing query", "job's log"),
    (Hop.APPLY, {"alarm": "it ended; remedy: look there"}, "it ended", "look there"),
    (Hop.APPLY, {"held": ("r-1",)}, "request r-1", "expires"),
    (Hop.APPLY, {"disk": "/lake has 1 MiB free"}, "1 MiB free", "free space"),
    (Hop.APPLY, {"merging": ("a.b",)}, "a.b is being brought", "lake's storage"),
    (Hop.APPLY, {}, "not applied up to a cut", "job's log"),
]


@pytest.mark.parametrize(("hop", "fault", "why", "remedy"), FAULTS)
def test_each_fault_is_named(hop: Hop, fault: dict[str, Any], why: str, remedy: str) -> None:
    found = cause(hop, replace(WELL, **fault))
    assert why in found.why
    assert remedy in found.remedy


@given(st.sampled_from(list(Hop)), st.lists(st.sampled_from(FAULTS), max_size=6))
def test_several_faults_together_give_the_cause_of_one_of_them(
    hop: Hop, faults: list[tuple[Hop, dict[str, Any], str, str]]
) -> None:
    facts = WELL
    for _, fault, _, _ in faults:
        facts = replace(facts, **fault)
    found = cause(hop, facts)
    assert found.why
    assert found.remedy
    assert any(why in found.why for at, _, why, _ in FAULTS if at is hop)
