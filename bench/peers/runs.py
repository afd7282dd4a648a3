"""Runs each system once: a first snapshot, then a load, with the same figures of both."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psutil
import psycopg
from deltalake import DeltaTable, QueryBuilder
from psycopg import sql

from bench.core.process_tree import Sampler, walsender_seconds
from bench.core.room import Room
from bench.core.statistics import steady_peak
from bench.peers import paimon
from bench.peers.flink_cluster import Cluster, cluster
from bench.peers.statements import job
from bench.whole.code import ours
from bench.whole.installation import Installation
from bench.whole.live import PER
from bench.whole.load import Load
from bench.whole.readable import await_all
from bench.whole.snapshot import connected_at
from bench.whole.tables import MARKERS_FROM, identifier, names
from cdc.lake.layout import ledger_path
from cdc.lake.records.ledger import Ledger, LedgerRow
from cdc.waiting import until

TABLES: Final = 4
"""Flink takes two slots for each table at first, and the embedded Postgres has ten."""
RATE: Final = 500
CHECKPOINT_SECONDS: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Holds what was measured in one run."""

    snapshot: float  # rows per second
    freshness: list[float]  # seconds of each marker
    cpu: dict[str, float]  # seconds per 100,000 changes, by process
    walsenders: float  # the same
    memory: dict[str, float]  # bytes, by process
    torn: float  # share


def run_ours(room: Room, root: Path) -> Seen:
    """Run wal2lake once."""
    one = Installation(root=root, code=ours())
    one.create(tables=TABLES, rows=room.sizes.peer_rows)
    with one.up():
        snapshot, last = _snapshot_of_ours(room, one, connected_at(one))

        def drained(lsn: int) -> None:
            one.await_cut(lsn, room.sizes.patience_seconds * 5)

        postgres = one.pids()["postgres"]
        load, sampler, sent = _loaded(room, one.source_url, one.pids(), postgres, drained)
    cuts = [row for row in Ledger(ledger_path(one.config)).rows(after=last) if row.lsn]
    times = [
        at - mark.committed_at
        for mark in load.marks
        if (at := _until_cut(cuts, mark.lsn)) is not None
    ]
    torn = [_is_torn(row) for row in cuts[:: max(1, len(cuts) // 20)]]
    return _seen(snapshot, times, load, sampler, sent, sum(torn) / max(len(torn), 1))


def _snapshot_of_ours(room: Room, one: Installation, began: float) -> tuple[float, int]:
    """Wait until all rows are readable; return rows per second, and the number of the cut."""
    rows = room.sizes.peer_rows
    await_all(one, tables=TABLES, rows=rows, seconds=room.sizes.patience_seconds * 5)
    cut = one.last_cut()
    assert cut is not None  # noqa: S101 - its rows were read
    return TABLES * rows / (cut.published_at.timestamp() - began), cut.cut


def _until_cut(cuts: list[LedgerRow], lsn: int) -> float | None:
    """Return when the first cut that reaches the LSN was published."""
    return next((c.published_at.timestamp() for c in cuts if c.lsn and c.lsn >= lsn), None)


def _is_torn(cut: LedgerRow) -> bool:
    """Return whether the tables of a cut hold different markers."""
    text, highest = f"select max(id) as id from t where id >= {MARKERS_FROM}", set()  # noqa: S608
    for entry in cut.tables:
        table = DeltaTable(entry.path, version=entry.version)
        found = QueryBuilder().register("t", table).execute(text).read_all()
        highest.add(found["id"][0].as_py())
    return len(highest) > 1


def run_flink(room: Room, root: Path, jars: list[Path]) -> Seen:
    """Run Flink CDC and Paimon once, on a Postgres of its own with the same settings."""
    source = Installation(root=root / "source", code=ours())
    source.create(tables=TABLES, rows=room.sizes.peer_rows)
    warehouse, tables = root / "warehouse", names(TABLES)
    places = [warehouse / "default.db" / name for name in tables]
    with source.postgres_alone() as url, cluster(root / "flink", jars, slots=2) as flink:
        _prepare(url, tables)
        began = time.time()
        flink.submit(job(url, tables, warehouse, checkpoint_seconds=CHECKPOINT_SECONDS))
        wanted = TABLES * room.sizes.peer_rows
        until(lambda: sum(map(paimon.rows, places)) >= wanted, room.sizes.patience_seconds * 5,
              "Flink's snapshot was not readable")  # fmt: skip
        snapshot = wanted / (time.time() - began)
        load, sampler, sent = _loaded(
            room, url, flink.pids, _postgres_pid(url), lambda _: _drained(room, flink, places, url)
        )
    histories = [paimon.snapshots(place) for place in places]
    times = [
        found - mark.committed_at
        for mark in load.marks
        if (found := _until_all(histories, mark.id)) is not None
    ]
    marked = [mark.committed_at for mark in load.marks]
    torn = paimon.torn_share(histories, marked[0], marked[-1])
    return _seen(snapshot, times, load, sampler, sent, torn)


def _until_all(histories: list[list[paimon.Snapshot]], marker: int) -> float | None:
    """Return when the last of the tables had a snapshot with the marker."""
    times = [next((s.at for s in h if s.highest >= marker), None) for h in histories]
    known = [at for at in times if at is not None]
    return max(known) if len(known) == len(histories) else None


def _prepare(url: str, tables: list[str]) -> None:
    """What the peer asks of the source: whole rows in the WAL, a publication for each table."""
    with psycopg.connect(url, autocommit=True) as conn:
        for table in tables:
            name = identifier(table)
            conn.execute(sql.SQL("alter table {} replica identity full").format(name))
            publication = sql.Identifier(f"flink_{table}")
            conn.execute(sql.SQL("create publication {} for table {}").format(publication, name))


def _postgres_pid(url: str) -> int:
    """Return the process id of the server's first process: the parent of any backend."""
    with psycopg.connect(url) as conn:
        return int(psutil.Process(conn.info.backend_pid).ppid())


def _drained(room: Room, flink: Cluster, places: list[Path], url: str) -> None:
    """Wait until a marker that is made after the load is in every table."""
    with psycopg.connect(url, autocommit=True) as conn:
        for table in names(TABLES):
            row = conn.execute(
                sql.SQL("select max(id) from {}").format(identifier(table))
            ).fetchone()
            assert row is not None  # noqa: S101 - an aggregate has a row
            last = int(row[0])
    until(
        lambda: all(paimon.snapshots(place)[-1].highest >= last for place in places),
        room.sizes.patience_seconds * 5,
        f"Flink did not catch up ({flink.running_jobs()} jobs run)",
    )


def _loaded(
    room: Room, url: str, pids: Mapping[str, int], postgres: int, drained: Callable[[int], None]
) -> tuple[Load, Sampler, float]:  # fmt: skip
    """Put the load on the source; return it with what was spent until it had been applied.

    A load before it warms up what follows.
    """
    tables = names(TABLES)
    warm, load = (
        Load(url=url, tables=tables, marked=tables, rows=room.sizes.peer_rows, rate=RATE,
             seed=room.seed + number)
        for number in range(2)
    )  # fmt: skip
    with warm:
        warm.wait(room.sizes.peer_warm_seconds)
    drained(warm.last_lsn)
    before = walsender_seconds(postgres)
    with Sampler(pids=pids) as sampler:
        with load:
            load.wait(room.sizes.peer_seconds)
        drained(load.last_lsn)
    return load, sampler, walsender_seconds(postgres) - before


def _seen(  # noqa: PLR0917 - the parts of a run
    snapshot: float, times: list[float], load: Load, sampler: Sampler, sent: float, torn: float
) -> Seen:
    per = PER / max(load.changes, 1)
    return Seen(
        snapshot=snapshot,
        freshness=times,
        cpu={name: seconds * per for name, seconds in sampler.cpu_seconds.items()},
        walsenders=sent * per,
        memory={name: steady_peak(samples) for name, samples in sampler.rss.items()},
        torn=torn,
    )
