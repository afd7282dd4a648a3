"""Change a schema unknown to wal2lake and its tests at random under load: the lake ends up equal.

Tables that are moved meanwhile (``tests/soak/schema/moves.py``) are equal too, or stop with a
reason, and no other table stops because of them (``tests/soak/schema/bystanders.py``).

.venv/bin/pytest tests/soak -m soak -s --sql schema.sql --sql data.sql --minutes 5 --seed 1
"""

import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from tests.e2e.installation import Installation
from tests.seeds import seed_of
from tests.servers.fixtures import on_containers, started, worker_settings
from tests.soak.schema import bystanders, catalogue, moves, scripts
from tests.soak.schema.comparison import counts_differing
from tests.soak.schema.facts import Table
from tests.soak.schema.judged import Judged, judge
from tests.soak.schema.walk import Walk

pytestmark = pytest.mark.soak

_SYNC_SECONDS = "300"
_SYNCS = 5
_TIMEOUT = 7
"""Exit code of a sync that has timed out."""
_STOPPED = 8
"""Exit code of a sync that has caught up except for stopped tables."""


@pytest.fixture
def installation(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Installation]:
    """Yield an installation, not up yet, with the files' database as its source."""
    files = [Path(name) for name in request.config.getoption("--sql", default=[])]
    if not files:
        pytest.skip("name the files of a database with --sql")
    others = ("kafka", "registry", "connect") if on_containers(request) else ()
    with started(request, tmp_path / "servers", ("postgres", *others)) as servers:
        worker = worker_settings(request)
        installed = Installation.write(tmp_path / "lakehouse", servers, worker)
        for file in files:
            with installed.connect() as connection:
                scripts.run(connection, file)
        try:
            yield installed
        finally:
            installed.run("down")
            assert installed.processes() == []


def test_source_and_lake_are_equal_after_random_changes(
    request: pytest.FixtureRequest, installation: Installation
) -> None:
    minutes = request.config.getoption("--minutes")
    seed = seed_of(request.config)
    moved = _movable(installation, seed)
    with psycopg.connect(installation.source_url) as connection:
        database = catalogue.read(connection)
    judged = judge(installation, database)
    _print_judged(f"seed {seed}, {minutes:g} minutes, {len(database.tables)} tables", judged)
    installation.run("up", "--detach")
    assert _sync(installation) == 0

    movable = [(move, table) for move, table in moved if move.quoted in judged.captured]
    assert movable, "check refuses every table that would be moved"
    walk = Walk(installation.source_url, seed=seed, moves=movable)
    with bystanders.Watch(installation, moves.MAY_STOP) as watch:
        with walk:
            walk.wait(minutes * 60)
        _say("\n".join(walk.tally.lines()))
        synced = _sync(installation)
    _say(watch.evidence.summary())
    verified = installation.any_facts("verify")

    stopped = _stopped_moves(installation)
    _say(f"stopped by name: {', '.join(sorted(stopped)) or 'none'}")
    failures = [*_stopped(installation, stopped), *_different(verified, stopped)]
    failures += [f"{name} was not moved: give it more minutes" for name in walk.unmoved]
    failures += [*watch.evidence.failures(walk.steps), *walk.unmarked]
    failures += _counted_differently(installation, set(judged.captured) - stopped)
    _say(_summary(verified))
    _say("\n".join(failures))
    assert failures == []
    assert synced == (_STOPPED if stopped else 0)
    verdicts = {verdict["table"] for verdict in verified["tables"]}
    assert verdicts | stopped == set(judged.captured)
    for kind in ("insert", "update", "delete", "update of a key"):
        assert walk.tally.statements[kind], f"no {kind} was committed"
    assert walk.tally.structures, "no structure was changed"


def _sync(installation: Installation) -> int:
    """Run ``sync`` for as long as a slow machine needs; return its exit code."""
    started = time.monotonic()
    for _ in range(_SYNCS):
        done = installation.done("sync", "--timeout", _SYNC_SECONDS)
        if done.returncode != _TIMEOUT:
            break
    _say(f"sync: exit {done.returncode} after {time.monotonic() - started:.0f} s")
    return done.returncode


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _print_judged(title: str, judged: Judged) -> None:
    _say(f"\n{title}")
    _say(f"captured: {len(judged.captured)}: {', '.join(judged.captured)}")
    _say(f"given REPLICA IDENTITY FULL: {', '.join(judged.given_identity) or 'none'}")
    for name, reason in judged.refused.items():
        _say(f"named by check: {name} {reason}")


def _movable(installation: Installation, seed: int) -> list[tuple[moves.Move, Table]]:
    """Create the moves' tables and then the bystanders, before the first snapshot.

    Return each move with the table that its own table is a copy of.
    """
    with psycopg.connect(installation.source_url) as connection:
        created = list(moves.created(catalogue.read(connection), random.Random(f"{seed} moves")))
        for _, _, statement in created:
            connection.execute(statement.sql.encode())
        connection.execute(bystanders.CREATE.encode())
    return [(move, table) for move, table, _ in created]


def _stopped_moves(installation: Installation) -> set[str]:
    """Return the moved tables that are stopped with a reason and a remedy."""
    return {
        table["table"]
        for table in installation.facts("status")["tables"]
        if table["table"] in moves.MAY_STOP
        and table["state"] == "stopped"
        and "; remedy: " in table["reason"]
    }


def _stopped(installation: Installation, allowed: set[str]) -> Iterator[str]:
    for table in installation.facts("status")["tables"]:
        if table["state"] != "streaming" and table["table"] not in allowed:
            yield f"{table['table']} is {table['state']}: {table['reason']}"


def _different(verified: dict[str, Any], stopped: set[str]) -> Iterator[str]:
    for verdict in verified["tables"]:
        if not verdict["equal"] and verdict["table"] not in stopped:
            yield f"{verdict['table']} differs: {verdict['comparison']}, {verdict['lacking']}"


def _counted_differently(installation: Installation, tables: set[str]) -> Iterator[str]:
    for table in sorted(tables):
        if difference := counts_differing(installation, table):
            yield f"{table} by delta-rs: {difference}"


def _summary(verified: dict[str, Any]) -> str:
    rows = sum(verdict["comparison"]["source_rows"] for verdict in verified["tables"])
    outcome = "equal" if verified["equal"] else "different"
    return (
        f"verify: {outcome}, {len(verified['tables'])} tables, {rows} rows, cut {verified['cut']}"
    )
