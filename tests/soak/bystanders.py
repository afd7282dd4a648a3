"""Tables that nothing is done to: after each step of a move a row is written to every one.

Read by delta-rs while the walk goes on, since one that stood still for a while is equal at the end.
"""

import threading
import time
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Final, Self

from deltalake import DeltaTable

from cdc.lake.layout import ledger_under
from tests.e2e.installation import Installation
from tests.soak.facts import Database, Statement

SCHEMA: Final = "bystanders"
NAMES: Final = tuple(f"beside_{number}" for number in range(10))
TABLES: Final = tuple(f"{SCHEMA}.{name}" for name in NAMES)
BEHIND_SECONDS: Final = 60.0
"""One table behind the others, however loaded the machine is: they share every cut."""
STILL_SECONDS: Final = 300.0
"""Nothing at all published, while the walk writes: as long as ``sync`` waits by default."""
_LOOK_SECONDS: Final = 2.0
MADE: Final = f"CREATE SCHEMA {SCHEMA};" + "".join(
    # The last one has no key, as any database may have such.
    f"CREATE TABLE {table} (id int {'PRIMARY KEY' if table != TABLES[-1] else 'NOT NULL'},"
    f" step text NOT NULL);INSERT INTO {table} VALUES (0, '');"
    for table in TABLES
)


def walked(database: Database) -> Database:
    """Without them: no writer and no other change of structure meets them."""
    others = tuple(table for table in database.tables if table.schema != SCHEMA)
    return Database(tables=others, own_types=database.own_types)


def told(step: str, number: int) -> Statement:
    """A row in each, in one transaction."""
    rows = (f"INSERT INTO {table} VALUES ({number}, '{step}')" for table in TABLES)
    return Statement(kind="beside a move", sql=";".join(rows))


class Standing:
    """What was seen of them, and for how long which one stood still."""

    def __init__(self, now: float) -> None:
        self._cut_at = now
        self._cuts = -1
        self._first = dict[str, float]()
        """When a step was first seen in any of them."""
        self._steps = dict.fromkeys(NAMES, frozenset[str]())
        self._behind = dict.fromkeys(NAMES, 0.0)
        """The longest that each lacked what another had."""
        self._still = 0.0

    def see(self, now: float, cuts: int, steps: Mapping[str, frozenset[str]]) -> None:
        self._still = max(self._still, now - self._cut_at)
        if cuts != self._cuts:
            self._cuts, self._cut_at = cuts, now
        self._steps = dict(steps)
        anywhere = frozenset[str]().union(*steps.values())
        for step in anywhere:
            self._first.setdefault(step, now)
        for name, seen in steps.items():
            waits = [now - self._first[step] for step in anywhere - seen]
            self._behind[name] = max([self._behind[name], *waits])

    def failures(self, steps: int) -> Iterator[str]:
        """What stood still, and what never came of so many steps."""
        for name, seconds in self._behind.items():
            if seconds > BEHIND_SECONDS:
                yield f"{name} was {seconds:.0f} s behind the other bystanders"
        if self._still > STILL_SECONDS:
            yield f"nothing was published for {self._still:.0f} s"
        for name, seen in self._steps.items():
            if len(seen) != steps:
                yield f"{name} has the rows of {len(seen)} steps of {steps}"

    def summary(self) -> str:
        longest = max(self._behind.values())
        return f"bystanders: at most {longest:.0f} s apart, {self._still:.0f} s without a cut"


class Watch:
    """Looks at them until the ``with`` block ends, and once more then."""

    def __init__(self, installation: Installation) -> None:
        self.standing = Standing(time.monotonic())
        self._lake = installation
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
        cuts = DeltaTable(ledger_under(str(self._lake.folder / "lake"))).version()
        steps = {name: self._steps(name) for name in NAMES}
        self.standing.see(time.monotonic(), cuts, steps)

    def _steps(self, name: str) -> frozenset[str]:
        rows = self._lake.lake_query(SCHEMA, name, "SELECT step FROM t WHERE step <> ''")
        return frozenset(step for (step,) in rows)
