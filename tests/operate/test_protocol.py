"""``sync`` and ``verify`` against a real source, with a stand-in for the job."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake
from typer.testing import CliRunner

from cdc.cli import app
from cdc.config import Config, load
from cdc.errors import CdcError, ErrorKind
from cdc.lake import epochs
from cdc.lake.layout import epochs_path, ledger_path, log_path, table_path
from cdc.lake.ledger import Ledger, LedgerRow, TableEntry
from cdc.lake.progress import LandedPosition
from cdc.operate import lag, moment, requests, verify
from cdc.operate.sync import sync
from cdc.source import barrier, snapshot
from cdc.source.captured import captured_tables
from cdc.source.postgres import Connection, connect
from cdc.source.prepare import prepare
from cdc.stack.endpoints import resolve
from cdc.tables import TableId
from tests.meanwhile import meanwhile

pytestmark = pytest.mark.integration

TABLE = TableId("shop", "t")
CONFIG = """\
source: {{url: "{url}", tables: [shop.t]}}
lake: {{path: lake}}
kafka: {{bootstrap_servers: "127.0.0.1:1"}}
connect: {{url: "http://127.0.0.1:1"}}
registry: {{url: "http://127.0.0.1:1"}}
"""


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no broker here: no need to wait long for its silence."""
    monkeypatch.setattr(lag, "SECONDS", 0.3)


@pytest.fixture
def path(source_url: str, tmp_path: Path) -> Path:
    made = tmp_path / "wal2lake.yaml"
    made.write_text(CONFIG.format(url=source_url))
    return made


@pytest.fixture
def config(path: Path) -> Config:
    return load(path, {})


@pytest.fixture
def source(config: Config, source_url: str) -> Iterator[Connection]:
    with connect(source_url) as connection:
        connection.execute("DROP SCHEMA IF EXISTS shop CASCADE")
        connection.execute("DROP PUBLICATION IF EXISTS wal2lake")
        connection.execute("CREATE SCHEMA shop")
        connection.execute("CREATE TABLE shop.t (id int PRIMARY KEY)")
        connection.execute("INSERT INTO shop.t VALUES (1)")
        prepare(connection, config, captured_tables(connection, config))
        yield connection


def write(config: Config, *ids: int) -> None:
    """The table in the lake, as the job would leave it."""
    rows = pa.table({"id": pa.array(ids, pa.int32()), "_cdc_offset": pa.array(ids, pa.int64())})
    write_deltalake(table_path(config, TABLE), rows, mode="overwrite")


def publish(
    config: Config, *, lsn: int | None, request: str | None = None, **entry: object
) -> None:
    """A cut of this epoch with the table's newest version."""
    ledger = Ledger(ledger_path(config))
    last, now = ledger.last(), datetime.now(UTC)
    path = table_path(config, TABLE)
    made = TableEntry(
        table=str(TABLE),
        path=path,
        version=DeltaTable(path).version(),
        offset=1,
        state="streaming",
    )
    row = LedgerRow(
        cut=last.cut + 1 if last else 1,
        epoch=epochs.number(epochs.last(epochs_path(config))),
        lsn=lsn,
        committed_at=now,
        published_at=now,
        transactions=1,
        request=request,
        tables=(replace(made, **entry),),  # type: ignore[arg-type]
    )
    ledger.append(row)


@contextmanager
def obedient_job(config: Config, *, before: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Gives the cut that is asked for, and at once another one after it."""
    served: set[str] = set()

    def step() -> None:
        for request in requests.pending(requests.directory(config.state_dir), time.time()):
            if request.bound is not None and request.id not in served:
                before()
                served.add(request.id)
                publish(config, lsn=request.bound - 1, request=request.id)
                publish(config, lsn=request.bound + 1)

    with meanwhile(step, every=0.02):
        yield


def asked(config: Config) -> list[requests.Request]:
    return requests.pending(requests.directory(config.state_dir), time.time())


def test_verify_compares_at_the_snapshot_and_lets_the_job_go(
    config: Config, source: Connection
) -> None:
    write(config, 1)
    publish(config, lsn=1)

    def somebody_commits() -> None:
        source.execute("INSERT INTO shop.t VALUES (2)")

    with obedient_job(config, before=somebody_commits):
        report = verify.verify(config, resolve(config), timeout=30)

    assert report.equal
    assert report.cut == 2  # and not 3, which was published right after it
    assert [table.comparison.source_rows for table in report.tables] == [1]
    assert asked(config) == []


def test_verify_holds_the_job_before_it_takes_the_snapshot(
    config: Config, source: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    del source
    write(config, 1)
    seen: list[int | None] = []
    real = snapshot.exported_snapshot

    def spied(url: str, seconds: float) -> object:
        seen.extend(request.bound for request in asked(config))
        return real(url, seconds)

    monkeypatch.setattr(moment, "exported_snapshot", spied)
    with obedient_job(config):
        verify.verify(config, resolve(config), timeout=30)

    assert seen == [None]


def test_verify_finds_what_the_lake_lacks_and_exits_with_1(
    config: Config, source: Connection, path: Path
) -> None:
    source.execute("INSERT INTO shop.t VALUES (7)")
    write(config, 1, 3)

    with obedient_job(config):
        shown = CliRunner().invoke(app, ["verify", "-c", str(path)])
        told = CliRunner().invoke(app, ["verify", "-c", str(path), "--json"])

    assert (shown.exit_code, told.exit_code) == (1, 1)
    assert "shop.t: missing id=7" in shown.stdout
    assert "shop.t: extra id=3" in shown.stdout
    facts = json.loads(told.stdout)
    assert (facts["equal"], facts["tables"][0]["comparison"]["missing"]) == (False, 1)


def test_verify_compares_nothing_with_a_cut_beyond_its_snapshot(
    config: Config, source: Connection
) -> None:
    del source
    write(config, 1)

    def too_far() -> None:
        for request in asked(config):
            if request.bound is not None:
                publish(config, lsn=request.bound + 1, request=request.id)

    with meanwhile(too_far), pytest.raises(CdcError, match="for a snapshot that it is beyond"):
        verify.verify(config, resolve(config), timeout=30)
    assert asked(config) == []


def begin_epoch_of_a_restored_source(config: Config, source: Connection) -> None:
    """The last cut is of another epoch, in which the source was far beyond where it is now."""
    publish(config, lsn=barrier.current_lsn(source) << 20)
    epochs.begin(
        epochs_path(config),
        name=config.name,
        reason="the source was restored to an older state",
        lsn=barrier.current_lsn(source),
        left_behind={},
        topic_ids={},
        system="",
        timeline=0,
    )


def test_verify_waits_for_a_cut_of_this_epoch_where_the_source_was_restored(
    config: Config, source: Connection
) -> None:
    write(config, 1)
    begin_epoch_of_a_restored_source(config, source)

    with obedient_job(config):
        report = verify.verify(config, resolve(config), timeout=60)

    assert report.equal
    assert report.cut == 2


def token(source: Connection) -> object:
    return source.execute("SELECT token FROM wal2lake.heartbeat").fetchone()


def test_sync_does_not_take_a_cut_of_another_epoch_for_its_own(
    config: Config, source: Connection
) -> None:
    write(config, 1)
    begin_epoch_of_a_restored_source(config, source)
    before, published = token(source), False

    def late() -> None:
        """Publish once the barrier is written: what is waited for is known then."""
        nonlocal published
        if published or token(source) == before:
            return
        published = True
        ledger = Ledger(ledger_path(config))
        last = ledger.last()
        assert last is not None
        ledger.append(replace(last, cut=2))  # of a job that is about to end
        publish(config, lsn=barrier.current_lsn(source))

    with meanwhile(late):
        done = sync(config, resolve(config), timeout=60)

    assert done.cut.cut == 3


def test_status_knows_no_lag_in_bytes_behind_a_cut_of_another_epoch(
    config: Config, source: Connection, path: Path
) -> None:
    write(config, 1)
    begin_epoch_of_a_restored_source(config, source)

    facts = json.loads(CliRunner().invoke(app, ["status", "-c", str(path), "--json"]).stdout)

    assert facts["tables"][0]["lag_bytes"] is None


def test_verify_says_where_it_hangs_and_takes_its_request_back(
    config: Config, source: Connection
) -> None:
    del source
    with pytest.raises(CdcError) as caught:
        verify.verify(config, resolve(config), timeout=1)

    assert caught.value.kind is ErrorKind.TIMEOUT
    assert "the job is not running" in caught.value.detail
    assert "nobody reads the replication slot" in caught.value.detail
    assert "no Connect worker answers" in caught.value.detail
    assert asked(config) == []


def test_sync_returns_when_a_cut_reaches_the_position_of_the_call(
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
        done = sync(config, resolve(config), timeout=30)

    assert done.lsn >= committed
    assert done.cut.lsn is not None
    assert done.cut.lsn >= done.lsn


def test_sync_moves_an_idle_source_past_the_position(config: Config, source: Connection) -> None:
    """A cut is a commit's position: without a commit after the call none would reach it."""
    write(config, 1)
    before = barrier.current_lsn(source)

    def newest_commit() -> None:
        row = source.execute("SELECT token FROM wal2lake.heartbeat WHERE id = 1").fetchone()
        if row != ("",):
            publish(config, lsn=barrier.current_lsn(source))

    source.execute("UPDATE wal2lake.heartbeat SET token = ''")
    with meanwhile(newest_commit):
        assert sync(config, resolve(config), timeout=30).lsn >= before


def test_sync_does_not_take_an_old_cut_for_a_new_one(config: Config, source: Connection) -> None:
    write(config, 1)
    publish(config, lsn=barrier.current_lsn(source) - 1)
    publish(config, lsn=None)

    with pytest.raises(CdcError, match="did not reach the source within") as caught:
        sync(config, resolve(config), timeout=1)
    assert caught.value.policy.exit_code == 7
    assert "the job is not running" in caught.value.detail


@pytest.mark.parametrize(("system", "timeline"), [("7", 0), ("", 77)])
def test_sync_does_not_take_the_position_of_another_source_for_its_barrier(
    config: Config, source: Connection, system: str, timeline: int
) -> None:
    """The one that is configured now: a standby that was promoted, while the job follows on."""
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
        sync(config, resolve(config), timeout=30)

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
            ("shop.t: column v is gone", "wal2lake status says more of shop.t"),
        ),
        (
            {"state": "degraded", "refused": 2},
            ("shop.t: refused events in quarantine: 2", "wal2lake quarantine list shop.t"),
        ),
    ],
)
def test_sync_names_the_table_that_does_not_follow(
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
        sync(config, resolve(config), timeout=30)

    assert caught.value.policy.exit_code == 8
    assert f"without shop.t: {entry['state']}" in caught.value.message
    assert (caught.value.detail, caught.value.remedy) == detail_and_remedy
    assert CliRunner().invoke(app, ["status", "-c", str(path)]).exit_code == 0


def test_status_shows_what_it_can_and_names_what_it_cannot_reach(
    config: Config, source: Connection, path: Path
) -> None:
    write(config, 1)
    lsn = barrier.current_lsn(source)
    publish(config, lsn=lsn, state="stopped", reason="its key changed")
    source.execute("SELECT pg_create_logical_replication_slot('wal2lake', 'pgoutput', true)")
    source.execute("INSERT INTO shop.t SELECT generate_series(100, 1000)")

    facts = json.loads(CliRunner().invoke(app, ["status", "-c", str(path), "--json"]).stdout)
    shown = CliRunner().invoke(app, ["status", "-c", str(path)]).stdout

    (table,) = facts["tables"]
    assert (table["state"], table["offset"], table["lag_offsets"]) == ("stopped", 1, None)
    assert table["lag_bytes"] >= 901 * 8
    assert table["lag_seconds"] > 0  # Kafka is silent, so nobody knows that nothing waits
    assert facts["source"]["retained_bytes"] > 0
    assert facts["source"]["wal_status"] == "reserved"
    assert facts["job"] == {"state": "unknown", "pid": None, "alive": False, "alarm": ""}
    assert any("Kafka" in text for text in facts["unreachable"])
    assert any("Connect" in text for text in facts["unreachable"])
    assert "its key changed" in shown
    assert "job: not running" in shown


def test_status_without_a_source_and_before_anything_ran(tmp_path: Path) -> None:
    made = tmp_path / "wal2lake.yaml"
    made.write_text(CONFIG.format(url="postgresql://u@127.0.0.1:1/d"))

    result = CliRunner().invoke(app, ["status", "-c", str(made)])

    assert result.exit_code == 0
    assert "nothing is published yet" in result.stdout
    assert "no Postgres answers at 127.0.0.1:1" in result.stdout
