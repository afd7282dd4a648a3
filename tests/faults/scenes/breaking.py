"""Hold the connector's first snapshot at a table, and break it off there."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from subprocess import Popen
from typing import Any, Final

import psycopg
from deltalake import DeltaTable

from cdc.config import load
from cdc.kafka.offsets import end_offsets
from cdc.state.pipeline import resolve
from tests.faults.bank.armed import NAME, Armed
from tests.faults.bank.bank import PARTS, Bank, at_work
from tests.faults.bank.walk import query
from tests.faults.scenes.running import begun
from tests.waiting import until

ROWS: Final = 200_000
EARLY: Final = "a_mid"
LATE: Final = "z_end"
LARGE: Final = "a_large"
OURS: Final = (LARGE, EARLY, LATE)
"""The connector reads tables by name: the large one, an empty one, the bank's, an empty one."""
SQL: Final = f"""
CREATE TABLE bank.{LARGE} (id int PRIMARY KEY, body text);
CREATE TABLE bank.{EARLY} (id int PRIMARY KEY);
CREATE TABLE bank.{LATE} (id int PRIMARY KEY);
INSERT INTO bank.{LARGE} SELECT i, md5(i::text) FROM generate_series(1, {ROWS}) i;
"""
CHANGES: Final = f"""
DELETE FROM bank.{LARGE} WHERE id <= 1000;
UPDATE bank.{LARGE} SET body = 'changed' WHERE id BETWEEN 1001 AND 1100;
DELETE FROM bank.odd WHERE id <= 3;
DELETE FROM bank.visits WHERE who = 'v1';
"""
"""Changes of rows that the broken attempt has read, as far as it got."""
TOPIC: Final = f"{NAME}.bank.{LARGE}"
START_SECONDS: Final = 600
_SLOT_IS_MADE: Final = """
SELECT 1 FROM pg_replication_slots
 WHERE slot_name = 'wal2lake' AND confirmed_flush_lsn IS NOT NULL
"""
_WAITING: Final = "SELECT 1 FROM pg_stat_activity WHERE {pid} = ANY(pg_blocking_pids(pid))"
_END: Final = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
 WHERE backend_type = 'walsender'
    OR pid IN (SELECT l.pid FROM pg_locks l WHERE NOT l.granted
                  AND l.relation IN ('bank.a_mid'::regclass, 'bank.z_end'::regclass))
"""
Break = Callable[[Armed], object]


def by_the_connector(written: dict[str, Any]) -> None:
    """Have the connector read the first snapshot, in a configuration that is written."""
    written["source"].update(snapshot="connector")


def starting(bank: Armed) -> AbstractContextManager[Popen[str]]:
    """Run the first ``up`` during the block."""
    return begun(bank, "up", "--detach")


@contextmanager
def gated(bank: Armed, table: str) -> Iterator[None]:
    """Make the connector's snapshot wait at the table until the block ends.

    The lock is taken after the slot is created: creating it waits for transactions with locks.
    """
    until(lambda: _holds(bank, _SLOT_IS_MADE), START_SECONDS)
    gate = bank.connect()
    try:
        gate.execute("BEGIN")
        gate.execute(f"LOCK TABLE bank.{table} IN ACCESS EXCLUSIVE MODE".encode())
        waiting = _WAITING.format(pid=gate.info.backend_pid)
        until(lambda: _holds(bank, waiting), START_SECONDS)
        yield
    finally:
        gate.close()


def _holds(bank: Armed, condition: str) -> bool:
    with bank.connect() as connection:
        return connection.execute(condition.encode()).fetchone() is not None


class Steady(Bank):
    """Never truncates: a snapshot sees no row of a table truncated after it began.

    The stream corrects that only at the truncate, and no cut before it could be judged.
    """

    def _empty(self, mark: int) -> None:
        self._connection.execute("DELETE FROM bank.emptied")
        self._connection.execute(
            "INSERT INTO bank.emptied SELECT i, %s FROM generate_series(1, %s) i", (mark, PARTS)
        )


steadily_at_work: Final = partial(at_work, kind=Steady)


def crowd(bank: Armed) -> None:
    """Insert unique rows into a table without a key, so that a doubled one is noticed."""
    row = "INSERT INTO bank.visits (who, page) VALUES ('crowd', (random() * 1e9)::int)"
    try:
        with bank.connect() as connection:
            for _ in range(10):
                connection.execute(row.encode())
    except psycopg.OperationalError:
        pass  # the source is being killed


def await_sent(bank: Armed) -> None:
    """Wait until rows of the large table are in Kafka; the job may not be running yet."""
    kafka = resolve(load(bank.config_file)).endpoints.kafka
    until(lambda: end_offsets(kafka, [TOPIC]).get(TOPIC, 0) > 0, START_SECONDS)


def await_landed(bank: Armed) -> None:
    """Wait until events of the large table are in the lake's log."""
    until(lambda: landed(bank) > 0, START_SECONDS)


def landed(bank: Armed) -> int:
    """Return the number of events of the large table in the lake's log."""
    if not DeltaTable.is_deltatable(f"{bank.lake}/_wal2lake/log"):
        return 0
    (row,) = query(bank, "_wal2lake/log", f"SELECT count(*) AS n FROM t WHERE topic = '{TOPIC}'")
    return int(row["n"])


def _killed(name: str, bank: Armed) -> None:
    bank.crash(name)


def _crashed(bank: Armed) -> None:
    bank.crash("postgres")


def _sessions_end(bank: Armed) -> None:
    """End the session that reads the snapshot and the one that created the slot."""
    bank.execute(_END)


def _down(bank: Armed) -> None:
    bank.run("down")


BREAKS: Final[dict[str, Break]] = {
    **{f"kill {name}": partial(_killed, name) for name in ("connect", "kafka", "registry", "job")},
    "kill postgres": _crashed,
    "end its sessions": _sessions_end,
    "down": _down,
}
