"""``sync`` runs against a real source and a stand-in for the job."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, write_deltalake
from typer.testing import CliRunner

from cdc.cli import app
from cdc.client.sync import sync
from cdc.config import Config
from cdc.errors import CdcError, ErrorKind
from cdc.lake.layout import ledger_path, log_path
from cdc.lake.records.ledger import Ledger
from cdc.lake.table.positions import LandedPosition
from cdc.source.server import barrier
from cdc.source.server.connection import Connection
from cdc.state.pipeline import resolve
from tests.client.protocol.stand_in import (
    begin_epoch_of_a_restored_source,
    heartbeat_token,
    publish,
    write,
)
from tests.meanwhile import meanwhile

pytestmark = pytest.mark.integration


def test_sync_ignores_a_cut_of_another_epoch(config: Config, source: Connection) -> None:
    write(config, 1)
    begin_epoch_of_a_restored_source(config, source)
    before, published = heartbeat_token(source), False

    def late() -> None:
        """Publish after the barrier is written: only then does sync know what it waits for."""
        nonlocal published
        if published or heartbeat_token(source) == before:
            return
        published = True
        ledger = Ledger(ledger_path(config))
        last = ledger.last()
        assert last is not None
        ledger.append(replace(last, cut=2))  # from a job that is about to end
        publish(config, lsn=barrier.current_lsn(source))

    with meanwhile(late):
        done = sync(resolve(config), timeout=60)

    assert done.cut.cut == 3


def test_sync_returns_when_a_cut_reaches_the_source_s_position_at_the_call(
    config: Config, source: Connection
) -> None:
    write(config, 1)
    behind = barrier.current_lsn(source)
    publish(config, lsn=behind)
    source.execute("INSERT INTO shop.t VALUES (2)")
    committed = barrier.current_lsn(source)

    def follow() -> None:
        publish(config, lsn=barrier.current_lsn(source))

    with meanwhile(follow):
        done = sync(resolve(config), timeout=30)

    assert done.lsn >= committed
    assert done.cut.lsn is not None
    assert done.cut.lsn >= done.lsn


def test_sync_moves_an_idle_source_past_the_position(config: Config, source: Connection) -> None:
    """Cuts end at commits, so none would reach the position without a commit after the call."""
    write(config, 1)
    before = barrier.current_lsn(source)

    def newest_commit() -> None:
        row = source.execute("SELECT token FROM wal2lake.heartbeat WHERE id = 1").fetchone()
        if row != ("",):
            publish(config, lsn=barrier.current_lsn(source))

    source.execute("UPDATE wal2lake.heartbeat SET token = ''")
    with meanwhile(newest_commit):
        assert sync(resolve(config), timeout=30).lsn >= before


def test_sync_ignores_a_cut_published_before_the_call(config: Config, source: Connection) -> None:
    write(config, 1)
    publish(config, lsn=barrier.current_lsn(source) - 1)
    publish(config, lsn=None)

    with pytest.raises(CdcError, match="did not catch up with the source within") as caught:
        sync(resolve(config), timeout=1)
    assert caught.value.policy.exit_code == 7
    assert "the job is not running" in caught.value.detail


@pytest.mark.parametrize(("system", "timeline"), [("7", 0), ("", 77)])
def test_sync_ignores_the_position_of_another_source(
    config: Config, source: Connection, system: str, timeline: int
) -> None:
    """The configured source is now a promoted standby, while the job still follows the old one."""
    write(config, 1)
    known = LandedPosition(
        epoch=1, landing=0, offsets={}, topic_ids={}, system=system, timeline=timeline
    )
    landed = CommitProperties(custom_metadata={"userMetadata": known.metadata()})
    rows = pa.table({"landing": pa.array([], pa.int64())})
    write_deltalake(log_path(config), rows, commit_properties=landed)

    def follow() -> None:
        publish(config, lsn=barrier.current_lsn(source))

    with meanwhile(follow), pytest.raises(CdcError) as caught:
        sync(resolve(config), timeout=30)

    assert caught.value.kind is ErrorKind.CHAIN_BROKEN


@pytest.mark.parametrize(
    ("entry", "detail_and_remedy"),
    [
        (
            {"state": "stopped", "reason": "column v is gone; remedy: wal2lake replay shop.t"},
            (
                "shop.t: column v is gone; remedy: wal2lake replay shop.t",
                "wal2lake replay shop.t",
            ),
        ),
        (
            {"state": "stopped", "reason": "column v is gone"},
            ("shop.t: column v is gone", "see wal2lake status for shop.t"),
        ),
        (
            {"state": "degraded", "refused": 2},
            ("shop.t: refused events in quarantine: 2", "wal2lake quarantine list shop.t"),
        ),
    ],
)
def test_sync_names_a_table_that_does_not_equal_the_source(
    config: Config,
    source: Connection,
    path: Path,
    entry: dict[str, Any],
    detail_and_remedy: tuple[str, str],
) -> None:
    write(config, 1)

    def follow() -> None:
        publish(config, lsn=barrier.current_lsn(source), **entry)

    with meanwhile(follow), pytest.raises(CdcError) as caught:
        sync(resolve(config), timeout=30)

    assert caught.value.policy.exit_code == 8
    assert f"except shop.t, which is {entry['state']}" in caught.value.message
    assert (caught.value.detail, caught.value.remedy) == detail_and_remedy
    assert CliRunner().invoke(app, ["status", "-c", str(path)]).exit_code == 0
