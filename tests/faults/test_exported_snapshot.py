"""Compare the lake with a snapshot that Postgres exported, at its LSN, under load: equal as text.

``verify`` takes no part. The test has its own slot; the source's rows are as Postgres prints them
(COPY), the lake's are read by delta-rs at the versions that the cut names. The only part of
wal2lake is the request by which a cut ends at the LSN (cdc/state/requests.py). It is written before
the snapshot is taken, so that no cut passes the LSN before it is known.
"""

import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import psycopg
import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder
from psycopg import IsolationLevel, sql

from cdc.failpoints import Failpoint
from cdc.state import requests
from cdc.state.requests import Request
from tests.faults.bank.armed import Armed
from tests.faults.bank.bank import TABLES, at_work
from tests.faults.bank.walk import Row, Walk, query
from tests.faults.scenes.disturbances import DISTURBANCES, nothing
from tests.waiting import until

pytestmark = [pytest.mark.e2e, pytest.mark.deep, pytest.mark.timeout(3600)]

ROUNDS: Final = 10
KILLED_ROUNDS: Final = 3
CUT_SECONDS: Final = 600
_REWRITTEN: Final = """
SELECT relfilenode <> pg_relation_filenode(oid) FROM pg_class
 WHERE oid = 'bank.emptied'::regclass
"""
"""The catalogue's row is from the snapshot; the function's result is current."""
Rows = dict[str, Counter[str]]
Disturb = Callable[[Armed], object]


def arm(point: Failpoint, bank: Armed) -> None:
    """Kill the job on its way to the cut that is about to be requested."""
    bank.arm(point)


CASES: Final[dict[str, tuple[int, Disturb]]] = {
    "undisturbed": (ROUNDS, nothing),
    **{
        name: (KILLED_ROUNDS, DISTURBANCES[name])
        for name in ("kill job", "kill connect", "kill kafka")
    },
    **{
        f"kill {point}": (KILLED_ROUNDS, partial(arm, point))
        for point in (Failpoint.AFTER_TABLE_COMMIT, Failpoint.BEFORE_LEDGER_APPEND)
    },
}
"""The number of rounds, and the disturbance in each while the job is held."""


@contextmanager
def held(bank: Armed) -> Iterator[str]:
    """Keep the job from publishing until the request has a bound; yield the request's id."""
    folder, name = requests.directory(bank.state_dir), uuid.uuid4().hex
    requests.write(folder, Request(id=name, expires_at=time.time() + CUT_SECONDS))
    try:
        yield name
    finally:
        requests.remove(folder, name)


@contextmanager
def exported(bank: Armed) -> Iterator[tuple[int, psycopg.Connection[Any]]]:
    """Yield an LSN and a transaction that sees all commits up to it and none beyond."""
    url, name = bank.source_url, f"oracle_{uuid.uuid4().hex[:12]}"
    with (
        psycopg.connect(url, autocommit=True, replication="database") as maker,
        psycopg.connect(url) as reader,
    ):
        command = f"CREATE_REPLICATION_SLOT {name} TEMPORARY LOGICAL test_decoding"
        slot = maker.execute(f"{command} (SNAPSHOT 'export')".encode()).fetchone()
        assert slot is not None
        _, point, snapshot, _ = slot
        reader.isolation_level = IsolationLevel.REPEATABLE_READ
        reader.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(snapshot))
        high, low = point.split("/")
        yield (int(high, 16) << 32) + int(low, 16), reader


def source_rows(bank: Armed) -> tuple[int, Rows]:
    """Return an LSN and the rows at it; repeat if ``bank.emptied`` was truncated meanwhile.

    A snapshot does not hide a TRUNCATE before the lock. The lock cannot come first: the slot would
    wait for a transaction that waits to truncate.
    """
    while True:
        with exported(bank) as (lsn, reader):
            reader.execute("LOCK TABLE bank.emptied IN ACCESS SHARE MODE")
            if reader.execute(_REWRITTEN).fetchone() == (False,):
                return lsn, {table: copy_rows(reader, table) for table in TABLES}


def copy_rows(reader: psycopg.Connection[Any], table: str) -> Counter[str]:
    command = sql.SQL("COPY (SELECT * FROM {}) TO STDOUT")
    with (
        reader.cursor() as cursor,
        cursor.copy(command.format(sql.Identifier("bank", table))) as copy,
    ):
        return Counter(b"".join(copy).decode().split("\n")[:-1])


def lake_rows(entry: Row) -> Counter[str]:
    """Return the rows at the cut's version, as Postgres prints them, without ``_cdc_`` columns."""
    opened = DeltaTable(entry["path"], version=entry["version"])
    rows = pa.table(QueryBuilder().register("t", opened).execute("SELECT * FROM t").read_all())
    names = [name for name in rows.column_names if not name.startswith("_cdc_")]
    return Counter("\t".join(spelled(row[n]) for n in names) for row in rows.to_pylist())


def spelled(value: object) -> str:
    """Spell a number, date or text as COPY does; the bank's texts need no escapes."""
    return r"\N" if value is None else str(value)


def cut_at(bank: Armed, hold: str, lsn: int) -> Row:
    """Return the ledger row of the cut with every commit up to the LSN and none beyond it."""
    rows: list[Row] = []
    text = f"SELECT * FROM t WHERE request = '{hold}' ORDER BY cut"

    def published() -> bool:
        rows[:] = query(bank, "_wal2lake/ledger", text)
        return bool(rows)

    folder = requests.directory(bank.state_dir)
    bound = Request(id=hold, expires_at=time.time() + CUT_SECONDS, bound=lsn)
    requests.write(folder, bound)  # transactions go on, so a commit beyond the LSN will come
    until(published, CUT_SECONDS)
    row = rows[0]  # a job that is killed afterwards may publish the request's cut twice
    assert row["lsn"] <= lsn == row["covers_lsn"]
    return row


def compared(bank: Armed, disturb: Disturb) -> tuple[Row, int]:
    """Return the cut's ledger row and the number of rows compared; fail if any row differs."""
    with held(bank) as hold:
        lsn, source = source_rows(bank)
        disturb(bank)
        row = cut_at(bank, hold, lsn)
    entries = {entry["table"]: entry for entry in row["tables"]}
    for table, expected in source.items():
        entry = entries[f"bank.{table}"]
        assert entry["state"] == "streaming", entry["reason"]
        in_lake = lake_rows(entry)
        missing, extra = expected - in_lake, in_lake - expected
        assert not missing, f"{table}: missing at {lsn}: {len(missing)}, as {min(missing)[:80]}"
        assert not extra, f"{table}: too much at {lsn}: {len(extra)}, as {min(extra)[:80]}"
    return row, sum(map(Counter.total, source.values()))


@pytest.mark.parametrize("name", CASES)
def test_the_lake_is_the_source_at_an_exported_snapshot(bank: Armed, walk: Walk, name: str) -> None:
    (rounds, disturb), rows, commits = CASES[name], 0, len(walk.commits)
    walk.note()
    with at_work(bank, walk.commits, seed=list(CASES).index(name)):
        at = -1
        for _ in range(rounds):
            row, count = compared(bank, disturb)
            assert row["lsn"] > at, "nothing was committed between two rounds"
            at, rows = row["lsn"], rows + count
            until(lambda: not any(bank.is_armed(point) for point in Failpoint))
    bank.sync()
    walk.go_on()
    transactions = len(walk.commits) - commits
    sys.stdout.write(
        f"\n| {name} | {rounds} rounds | {rows} rows compared | {transactions} transactions |\n"
    )
