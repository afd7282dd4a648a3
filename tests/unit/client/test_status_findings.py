"""``status --check`` prints and exits with the right findings, for made-up states of a pipeline."""

import json
import os
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from cdc.cli import app
from cdc.client.status.components import ConnectorPart, JobPart, ServerPart, SourcePart, UpPart
from cdc.client.status.status import Status, TableStatus
from cdc.client.status.status_findings import (
    IGNORED_BY_LIVE,
    WORST_FIRST,
    exit_code,
    findings,
    live,
)
from cdc.errors import POLICY, ErrorKind
from cdc.lake.records.derived_entry import DerivedEntry
from cdc.observe.hop_motion import Hop, Motion
from cdc.stack.process.process import ProcessIdentity
from cdc.stack.process.stack_report import StackReport
from cdc.state import health
from cdc.state.directory import StateDir
from cdc.state.health import Health, HopHealth

HOPS = tuple(HopHealth(hop=hop, motion=Motion.MOVES, seconds=1.0) for hop in Hop)
SOURCE = SourcePart(
    current_lsn=9,
    slot_active=True,
    reader="Debezium Streaming",
    wal_status="reserved",
    retained_bytes=1,
)
JOB = ServerPart(name="job", state="running", pid=7, restarts=0, reason="")


def table(state: str, reason: str = "") -> TableStatus:
    return TableStatus(
        table="a.b",
        state=state,
        reason=reason,
        rows_applied=1,
        refused=2,
        offset=3,
        lag_offsets=0,
        lag_bytes=0,
        lag_seconds=0.0,
    )


def derived(state: str, reason: str = "", at_cut: int = 5) -> DerivedEntry:
    return DerivedEntry(
        table="marts.a", path="lake/marts/a", version=1, state=state, reason=reason, at_cut=at_cut
    )


def well() -> Status:
    return Status(
        cut=4,
        lsn=9,
        published_at=datetime.now(UTC),
        tables=(table("streaming"),),
        source=SOURCE,
        connector=ConnectorPart(state="RUNNING"),
        job=JobPart(state="applying", pid=7, alive=True),
        servers=(JOB,),
        up=UpPart(phase="ready"),
        health=Health(pid=7, age_seconds=2.0, hops=HOPS),
    )


def hop(found: Hop, motion: Motion, why: str = "") -> Health:
    changed = HopHealth(hop=found, motion=motion, seconds=50.0, why=why, remedy="mend it")
    hops = tuple(changed if each.hop is found else each for each in HOPS)
    return Health(pid=7, age_seconds=2.0, hops=hops)


DEAD = JobPart(state="applying", pid=7, alive=False)
LATE = datetime.now(UTC) - timedelta(hours=1)
CASES: dict[str, tuple[dict[str, Any], ErrorKind, str]] = {
    "nothing": ({"up": None, "job": DEAD}, ErrorKind.SERVER_FAILED, "and neither is wal2lake up"),
    "up starts": ({"up": UpPart(phase="starting", doing="kafka")}, ErrorKind.STARTING, "kafka"),
    "up failed": (
        {"job": DEAD, "up": UpPart(phase="failed", kind="config", error="a typo", remedy="x")},
        ErrorKind.CONFIG,
        "a typo",
    ),
    "up is gone": ({"up": UpPart(phase="gone")}, ErrorKind.SERVER_FAILED, "has ended"),
    "the job died": ({"job": DEAD}, ErrorKind.SERVER_FAILED, "the job is not running"),
    "the job is waited for": (
        {"job": DEAD, "servers": (replace(JOB, state="waiting", reason="ended with 4"),)},
        ErrorKind.SERVER_FAILED,
        "job is waiting: ended with 4",
    ),
    "the job starts": (
        {"job": JobPart(state="starting", pid=7, alive=True)},
        ErrorKind.STARTING,
        "the job is starting",
    ),
    "the job starts over and over": (
        {
            "job": JobPart(state="starting", pid=7, alive=True),
            "servers": (replace(JOB, restarts=5),),
        },
        ErrorKind.SERVER_FAILED,
        "after 5 restarts",
    ),
    "a server": (
        {"servers": (JOB, replace(JOB, name="kafka", state="waiting", reason="ended"))},
        ErrorKind.SERVER_FAILED,
        "kafka is waiting: ended",
    ),
    "hangs": (
        {"health": Health(pid=7, age_seconds=99.0, hops=HOPS)},
        ErrorKind.STANDS_STILL,
        "its health watch has been silent for 99 s",
    ),
    "another job's watch": (
        {"health": Health(pid=6, age_seconds=1.0, hops=HOPS)},
        ErrorKind.STANDS_STILL,
        "hangs",
    ),
    "no watch": ({"health": None}, ErrorKind.STANDS_STILL, "hangs"),
    "capture": (
        {"health": hop(Hop.CAPTURE, Motion.STANDS, "it is PAUSED")},
        ErrorKind.STANDS_STILL,
        "source to Kafka has stood still for 50 s: it is PAUSED",
    ),
    "landing": ({"health": hop(Hop.LAND, Motion.STANDS)}, ErrorKind.STANDS_STILL, "Kafka to log"),
    "merging": (
        {"health": hop(Hop.APPLY, Motion.BEHIND, "a.b"), "published_at": LATE},
        ErrorKind.BEHIND,
        "log to tables has been at work for 50 s: a.b",
    ),
    "on its way": ({"published_at": LATE}, ErrorKind.BEHIND, " s, although every hop moves"),
    "alarm": (
        {"job": JobPart(state="applying", pid=7, alive=True, alarm="tx 7; remedy: look")},
        ErrorKind.STANDS_STILL,
        "tx 7",
    ),
    "first snapshot": ({"lsn": None}, ErrorKind.STARTING, "first snapshot is under way"),
    "stopped": (
        {"tables": (table("stopped", "it has no key; remedy: resnapshot"),)},
        ErrorKind.TABLE_STOPPED,
        "table a.b is stopped: it has no key",
    ),
    "degraded": (
        {"tables": (table("degraded"),)},
        ErrorKind.TABLE_STOPPED,
        "table a.b is degraded: 2 refused events",
    ),
    "silent": ({"unreachable": ("no broker",)}, ErrorKind.UNREACHABLE, "no broker"),
    "no registry": (
        {"health": Health(pid=7, age_seconds=1.0, hops=HOPS, registry="no registry is ready")},
        ErrorKind.UNREACHABLE,
        "no registry is ready; a structure change",
    ),
    "not noted": (
        {"health": Health(pid=7, age_seconds=1.0, hops=HOPS, unnoted="event trigger x is off")},
        ErrorKind.TABLE_STOPPED,
        "changes of a table's structure may not be noted: event trigger x is off",
    ),
    "no slot": (
        {"source": replace(SOURCE, wal_status=None)},
        ErrorKind.CHAIN_BROKEN,
        "the replication slot does not exist",
    ),
    "lost slot": (
        {"source": replace(SOURCE, wal_status="lost")},
        ErrorKind.CHAIN_BROKEN,
        "has lost WAL",
    ),
    "idle slot": (
        {"source": replace(SOURCE, slot_active=False)},
        ErrorKind.SERVER_FAILED,
        "nothing reads the replication slot",
    ),
    "intruder": (
        {"source": replace(SOURCE, reader="psql")},
        ErrorKind.SERVER_FAILED,
        "read by psql",
    ),
    "paused": (
        {"connector": ConnectorPart(state="PAUSED")},
        ErrorKind.SERVER_FAILED,
        "the connector is PAUSED",
    ),
    "disk": ({"disk": "/lake has 1 MiB free"}, ErrorKind.DISK_FULL, "1 MiB free"),
}


def test_a_healthy_pipeline_has_no_findings() -> None:
    assert findings(well()) == []
    assert exit_code([]) == 0


@pytest.mark.parametrize("case", CASES)
def test_each_problem_is_one_finding_with_kind_and_remedy(case: str) -> None:
    change, kind, words = CASES[case]
    [found] = findings(replace(well(), **change))
    assert found.kind is kind
    assert words in found.what
    assert found.remedy
    assert exit_code([found]) == POLICY[kind].exit_code > 0


@pytest.mark.parametrize("state", ["streaming", "lagging", "building", "degraded"])
def test_a_derived_table_that_goes_on_is_no_problem(state: str) -> None:
    """Where one of its inputs is degraded, that input is the finding."""
    assert findings(replace(well(), derived=(derived(state, "a reason"),))) == []


def test_a_derived_table_that_stopped_is_a_finding() -> None:
    (found,) = findings(replace(well(), derived=(derived("stopped", "its query failed"),)))

    assert found.kind is ErrorKind.TABLE_STOPPED
    assert found.what == "marts.a, a derived table, is stopped: its query failed"


@given(st.lists(st.sampled_from(list(CASES)), max_size=6))
def test_the_worst_finding_decides_and_live_ignores_tables_starts_and_lag(
    cases: list[str],
) -> None:
    now = well()
    for case in cases:
        now = replace(now, **CASES[case][0])
    found = findings(now)
    ranks = [WORST_FIRST.index(each.kind) if each.kind in WORST_FIRST else -1 for each in found]
    assert ranks == sorted(ranks)
    assert exit_code(found) == (POLICY[found[0].kind].exit_code if found else 0)
    assert [each for each in found if each.kind not in IGNORED_BY_LIVE] == live(found)


@pytest.mark.parametrize("option", ["--check", "--live"])
def test_the_command_exits_with_the_code_of_the_worst_finding(tmp_path: Path, option: str) -> None:
    config = tmp_path / "wal2lake.yaml"
    config.write_text('source: {tables: ["a.*"]}\nlake: {path: lake}\n')
    code = POLICY[ErrorKind.SERVER_FAILED].exit_code
    result = CliRunner().invoke(app, ["status", option, "--config", str(config)])
    assert result.exit_code == code
    problem = "the job is not running, and neither is wal2lake up"
    assert result.output == f"server failed: {problem}; remedy: wal2lake up\n"
    result = CliRunner().invoke(app, ["status", option, "--json", "--config", str(config)])
    assert result.exit_code == code
    [finding] = json.loads(result.output)["findings"]
    assert (finding["kind"], finding["exit_code"]) == ("server_failed", code)
    # Without either option the status is shown, and the command succeeds.
    assert CliRunner().invoke(app, ["status", "--config", str(config)]).exit_code == 0


def test_a_start_has_its_own_code_and_live_ignores_it(tmp_path: Path) -> None:
    config = tmp_path / "wal2lake.yaml"
    config.write_text('source: {tables: ["a.*"]}\nlake: {path: lake}\nstate_dir: state\n')
    (tmp_path / "state").mkdir()
    state = StateDir(tmp_path / "state")
    StackReport(state=state, supervisor=ProcessIdentity.of(os.getpid())).event("starting kafka")
    result = CliRunner().invoke(app, ["status", "--check", "--config", str(config)])
    assert result.exit_code == POLICY[ErrorKind.STARTING].exit_code
    assert result.output.startswith("starting: wal2lake up has not finished: starting kafka; ")
    assert CliRunner().invoke(app, ["status", "--live", "--config", str(config)]).exit_code == 0


def test_the_watch_s_report_is_read_with_its_age(tmp_path: Path) -> None:
    assert health.read(tmp_path, 0.0) is None
    now = time.monotonic()
    health.write(tmp_path, list(HOPS), now, registry="silent", unnoted="off")
    found = health.read(tmp_path, now + 3)
    assert found is not None
    assert (found.hops, found.registry, found.unnoted) == (HOPS, "silent", "off")
    assert found.age_seconds == pytest.approx(3)
    (tmp_path / "health.json").write_text("{")
    assert health.read(tmp_path, now) is None
