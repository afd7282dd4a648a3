"""Change the configuration while an operation of the old run is about to commit its reading."""

import json
import subprocess
from typing import Any

import pytest

from cdc.failpoints import Failpoint
from cdc.state import operation_files as files
from tests.faults.bank.armed import Armed
from tests.faults.bank.bank import TABLES
from tests.operations.blind import unseen
from tests.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.deep]

SECONDS = 300
RELOADING_SECONDS = 40
"""Longer than the half minute after which the old run was once counted as ended."""
BLIND = """
DELETE FROM bank.bulk WHERE id <= 20;
UPDATE bank.bulk SET body = 'unseen' WHERE id BETWEEN 21 AND 40
"""
MEANWHILE = """
INSERT INTO bank.bulk SELECT i, 1, 'again' FROM generate_series(1, 20) i;
DELETE FROM bank.bulk WHERE id BETWEEN 21 AND 60;
UPDATE bank.counters SET n = n + 1
"""
"""An older reading that commits after these would undo the inserts and restore deleted rows."""


@pytest.mark.parametrize(
    ("point", "options"),
    [
        pytest.param(Failpoint.BEFORE_DIFFERENCE_MERGE, (), id="merge"),
        pytest.param(Failpoint.BEFORE_READING_SWAP, ("--shadow",), id="swap"),
    ],
)
def test_no_run_begins_before_the_previous_run_has_committed(
    bank: Armed, point: Failpoint, options: tuple[str, ...]
) -> None:
    with unseen(bank, "bank.bulk"):
        bank.execute(BLIND)
    bank.hold(point)
    bank.run("resnapshot", "bank.bulk", *options, "--detach")
    [operation] = files.unfinished(bank.state_dir)
    until(lambda: bank.is_held(point), SECONDS)

    bank.configure(_other_batches)
    with subprocess.Popen(
        bank.command("apply-config"), cwd=bank.folder, env=bank.environment
    ) as applying:
        until(lambda: _state(bank) == "reloading", SECONDS)
        bank.execute(MEANWHILE)
        until(lambda: _is_published(bank), SECONDS)  # the other tables are still published
        with pytest.raises(subprocess.TimeoutExpired):
            applying.wait(RELOADING_SECONDS)
        assert _state(bank) == "reloading"
        bank.release(point)
        assert applying.wait(SECONDS) == 0

    bank.run("operations", operation.id, "--follow")
    bank.sync()
    assert bank.facts("verify")["equal"]
    bank.assert_equal(*TABLES)


def _other_batches(written: dict[str, Any]) -> None:
    before = written["job"].get("max_events_per_batch", 100_000)
    written["job"]["max_events_per_batch"] = before - 1


def _state(bank: Armed) -> str:
    return str(json.loads((bank.state_dir / "job.json").read_text())["state"])


def _is_published(bank: Armed) -> bool:
    return bank.source_rows("counters") == bank.lake_rows("counters")
