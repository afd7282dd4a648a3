"""Tables that are not moved: after each step of a move every one of them gets a row.

delta-rs reads them at every cut, because a table that stopped for a while is equal at the end.
"""

import threading
import time
from collections.abc import Collection, Iterator, Mapping
from types import TracebackType
from typing import Final, Self

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from cdc.lake.layout import ledger_under
from cdc.lake.records.ledger import Ledger, LedgerRow
from cdc.tables import TableState
from tests.e2e.installation import Installation
from tests.soak.schema.facts import Database, Statement

SCHEMA: Final = "bystanders"
KIND: Final = "beside a move"
NAMES: Final = tuple(f"beside_{number}" for number in range(10))
TABLES: Final = tuple(f"{SCHEMA}.{name}" for name in NAMES)
STILL_SECONDS: Final = 600.0
"""The longest time without a cut while the walk writes, even on a loaded machine."""
_LOOK_SECONDS: Final = 2.0
CREATE: Final = f"CREATE SCHEMA {SCHEMA};" + "".join(
    # The last table has no key, as tables of any database may.
    f"CREATE TABLE {table} (id int {'PRIMARY KEY' if table != TABLES[-1] else 'NOT NULL'},"
    f" step text NOT NULL);INSERT INTO {table} VALUES (0, '');"
    for table in TABLES
)


def without_bystanders(database: Database) -> Database:
    """Leave the bystanders out of what the walk writes to and changes."""
    others = tuple(table for table in database.tables if table.schema != SCHEMA)
    return Database(tables=others, own_types=database.own_types)


def write(step: str, number: int) -> Statement:
    """Return a transaction that inserts a row into every bystander."""
    rows = (f"INSERT INTO {table} VALUES ({number}, '{step}')" for table in TABLES)
    return Statement(kind=KIND, sql=";".join(rows))


class Evidence:
    """The cuts' evidence: a bystander that lacks another's rows at a cut has fallen behind."""

    def __init__(self, now: float, may_stop: Collection[str]) -> None:
        self._cut_at = now
        self._may_stop = frozenset(may_stop)
        self._steps = dict.fromkeys(NAMES, frozenset[str]())
        self._failures = dict[str, None]()
        self.cuts = 0
        self.still = 0.0

    def see(self, now: float, cut: LedgerRow, steps: Mapping[str, frozenset[str]]) -> None:
        """Record a cut with the steps that have a row in each bystander at it."""
        self.cuts += 1
        self.still = max(self.still, now - self._cut_at)
        self._cut_at, self._steps = now, dict(steps)
        anywhere = frozenset[str]().union(*steps.values())
        for name, seen in steps.items():
            if seen != anywhere:
                lacking = ", ".join(sorted(anywhere - seen))
                self._failures[f"{name} is behind the others at cut {cut.cut}: {lacking}"] = None
        for entry in cut.tables:
            if entry.state != TableState.STREAMING.value and entry.table not in self._may_stop:
                self._failures[f"{entry.table} was {entry.state} meanwhile: {entry.reason}"] = None

    def failures(self, steps: int) -> Iterator[str]:
        """Yield what fell behind or stopped, and bystanders without all of ``steps`` rows."""
        yield from self._failures
        if self.still > STILL_SECONDS:
            yield f"nothing was published for {self.still:.0f} s"
        for name, seen in self._steps.items():
            if len(seen) != steps:
                yield f"{name} has the rows of {len(seen)} steps of {steps}"

    def summary(self) -> str:
        """Return a line for the report."""
        return f"bystanders: seen at {self.cuts} cuts, at most {self.still:.0f} s between two"


class Watch:
    """A watch that looks at every cut until the ``with`` block ends, and once more then."""

    def __init__(self, installation: Installation, may_stop: Collection[str]) -> None:
        self.evidence = Evidence(time.monotonic(), may_stop)
        self._ledger = Ledger(ledger_under(str(installation.folder / "lake")))
        last = self._ledger.last()
        self._cut = last.cut if last else 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="bystanders")
        self._errors: list[BaseException] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._thread.join()
        if kind is None and self._errors:
            raise self._errors[0]

    def _watch(self) -> None:
        try:
            while not self._stop.wait(_LOOK_SECONDS):
                self._look()
            self._look()
        except BaseException as error:  # noqa: BLE001 - raised again by __exit__
            self._errors.append(error)

    def _look(self) -> None:
        for cut in self._ledger.rows(after=self._cut):
            self.evidence.see(time.monotonic(), cut, {name: _steps(cut, name) for name in NAMES})
            self._cut = cut.cut


def _steps(cut: LedgerRow, name: str) -> frozenset[str]:
    """Return the steps that have a row in the table at the cut."""
    entry = cut.entry(f"{SCHEMA}.{name}")
    assert entry is not None, f"{name} is not in cut {cut.cut}"
    table = DeltaTable(entry.path, version=entry.version)
    query = "SELECT step FROM t WHERE step <> ''"
    rows = pa.table(QueryBuilder().register("t", table).execute(query).read_all())
    return frozenset(rows.column("step").to_pylist())
