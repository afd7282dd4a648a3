"""Test on random databases that whatever ``check`` accepts works.

.venv/bin/pytest tests/schemas --deep -s --databases 10 --seed 1
"""

import random
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from tests.schemas.database import database
from tests.schemas.pipeline import Judged, Pipeline
from tests.servers.fixtures import worker_settings
from tests.servers.server import Server
from tests.soak.schema import catalogue
from tests.soak.schema.rows import row_change
from tests.soak.schema.transactions import Transaction, transaction

pytestmark = [pytest.mark.e2e, pytest.mark.deep, pytest.mark.timeout(3600)]

_FEWEST: Final = 8
"""Tables of a database that are captured, or its names and types say nothing."""
_SYNC: Final = ("sync", "--timeout", "900")
_WITHOUT_A_TABLE: Final = 8
"""Exit code of a sync that got there, while a table is stopped or degraded."""
_CHANGES: Final = 4
"""Changes of each table, besides the transactions over any tables."""
_TRANSACTIONS: Final = 60


@pytest.fixture
def pipeline(
    request: pytest.FixtureRequest, servers: Mapping[str, Server], tmp_path: Path, seed: int
) -> Iterator[Pipeline]:
    """Yield the pipeline of the seed's database; nothing of it is captured yet."""
    worker = worker_settings(request)
    found = Pipeline.write(tmp_path / "lakehouse", servers, worker, name=f"schemas_{seed}")
    found.create(database(seed))
    try:
        yield found
    finally:
        found.remove()
        assert found.installation.processes() == []


def test_what_check_accepts_is_equal_in_the_lake(pipeline: Pipeline, seed: int) -> None:
    _say(f"\nseed {seed}: {len(pipeline.statements)} statements, {_refusals(pipeline)}")
    judged = pipeline.judge()
    _say(_lines(judged))
    assert len(judged.captured) >= _FEWEST

    pipeline.installation.run("up", "--detach")
    assert _broken_promises(pipeline, judged, seed, "first snapshot") == []

    _change(pipeline, random.Random(f"changes {seed}"))
    _say("\n".join(pipeline.tally.lines()))
    assert _broken_promises(pipeline, judged, seed, "stream") == []
    for kind in ("insert", "update", "delete", "update of a key"):
        assert pipeline.tally.statements[kind], f"no {kind} was committed"


def _change(pipeline: Pipeline, rng: random.Random) -> None:
    """Change rows of all tables, even of those that are not captured."""
    session = pipeline.session()
    with session.connection:
        session.connection.execute("SET statement_timeout = '60s'")
        for _ in range(_CHANGES):
            tables = catalogue.read(session.connection).tables
            for table in tables:
                change = row_change(table, rng)
                session.perform(Transaction(statements=(change,), guarded=False, commits=True))
        found = catalogue.read(session.connection)
        for _ in range(_TRANSACTIONS):
            session.perform(transaction(found, rng))


def _broken_promises(pipeline: Pipeline, judged: Judged, seed: int, phase: str) -> list[str]:
    """Return each broken promise, with what is needed to repeat it."""
    pipeline.installation.done(*_SYNC)
    # Only a later cut shows that the first snapshot of an empty table has ended.
    synced = pipeline.installation.done(*_SYNC)
    status = pipeline.installation.any_facts("status")
    if synced.returncode not in {0, _WITHOUT_A_TABLE}:
        return [f"seed {seed}, {phase}: {synced.stdout}{synced.stderr}{status}"]
    verified = pipeline.installation.any_facts("verify")
    _say(f"{phase}: sync {synced.returncode}, {_summary(verified)}")
    failures = [
        "\n".join([f"seed {seed}, {phase}: {table}: {reason}", *pipeline.made_of(table)])
        for table, reason in _faults(judged, status, verified)
    ]
    _say("\n".join(failures))
    return failures


def _faults(
    judged: Judged, status: dict[str, Any], verified: dict[str, Any]
) -> Iterator[tuple[str, str]]:
    """Return the faults by table."""
    states = {table["table"]: table for table in status.get("tables", ())}
    verdicts = {verdict["table"]: verdict for verdict in verified.get("tables", ())}
    for name in judged.captured:
        state, verdict = states.get(name), verdicts.get(name)
        if state is None or state["state"] != "streaming":
            yield name, f"is not streaming: {state}"
        elif verdict is None or not verdict["equal"]:
            yield name, f"is not equal: {verdict}"
    for name in states.keys() - set(judged.captured):
        yield name, "is captured, and not named"


def _refusals(pipeline: Pipeline) -> str:
    refused = pipeline.tally.refused
    listed = ", ".join(f"{kind} {state} {n}" for (kind, state), n in refused.most_common())
    return f"{refused.total()} refused by Postgres ({listed})"


def _lines(judged: Judged) -> str:
    return "\n".join(
        (
            f"captured: {len(judged.captured)}: {', '.join(judged.captured)}",
            f"as inserts only: {', '.join(judged.appended) or 'none'}",
            *(f"refused by check: {name!r}: {why}" for name, why in judged.refused.items()),
        )
    )


def _summary(verified: dict[str, Any]) -> str:
    tables = verified.get("tables", ())
    rows = sum(verdict["comparison"]["source_rows"] for verdict in tables)
    return f"verify of {len(tables)} tables, {rows} rows: equal {verified.get('equal')}"


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
