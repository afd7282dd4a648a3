"""Calculate every published version of a derived table again, by plain DuckDB over delta-rs."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias

import duckdb
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from tests.faults.bank.marts import HISTORIES, MARTS, Mart

Row = dict[str, Any]
Rows: TypeAlias = "Counter[tuple[Any, ...]]"
Readings: TypeAlias = Mapping[str, Sequence[tuple[int, int]]]
"""By table, the number of each reading and the LSN at which it read the source."""
_READ: Final = ("streaming", "degraded")
_VERSIONS: Final = "SELECT count(*) FROM t WHERE _op = 'u'"
"""Each transaction of the bank changes two accounts."""


class Told(NamedTuple):
    """Holds what a history said of an LSN, and the number of its table's last reading then."""

    rows: Rows
    reading: int


@dataclass
class Recomputed:
    """What has been calculated again so far."""

    versions: int = 0
    """Compared versions of derived tables, each once for each version of its inputs."""
    names: set[str] = field(default_factory=set)
    """Tables of which versions were compared."""
    _seen: set[tuple[Any, ...]] = field(default_factory=set)
    _past: dict[str, dict[tuple[int, int], Told]] = field(default_factory=dict)

    def judge(self, row: Row, cuts: Mapping[int, Row]) -> None:
        """Assert that each derived table at the cut has the rows that its inputs give."""
        for entry in row.get("derived") or ():
            made_at = cuts.get(entry["at_cut"])
            if entry["table"] in MARTS and entry["version"] >= 0 and made_at is not None:
                self._compare(entry, made_at, f"cut {row['cut']}: {entry['table']}")

    def look_back(self, row: Row, readings: Readings) -> None:
        """Assert that the histories of a cut still have all rows of the cuts before.

        A reading into a shadow corrects them from its own LSN on, once it has taken its place.
        """
        for entry in row.get("derived") or ():
            past = self._past.get(entry["table"], {})
            if not past or entry["version"] < 0:
                continue
            mart = MARTS[entry["table"]]
            with _loaded({"t": entry}) as database:
                for (epoch, lsn), told in past.items():
                    now = _rows(database, mart.stored.format(epoch=epoch, lsn=lsn))
                    later = [n for n, at in readings.get(mart.inputs[0], ()) if at <= lsn]
                    newest = max(later, default=0)
                    where = f"{entry['table']} at cut {row['cut']}: other rows of LSN {lsn}"
                    assert now == told.rows or newest > told.reading, where
                    past[epoch, lsn] = Told(now, max(newest, told.reading))

    def _compare(self, entry: Row, made_at: Row, where: str) -> None:
        mart = MARTS[entry["table"]]
        inputs = _inputs(mart, made_at)
        if inputs is None or made_at["lsn"] is None:
            return
        place = tuple(each["version"] for each in inputs.values())
        seen = (entry["path"], entry["version"], *place)
        if entry["table"] in HISTORIES:
            seen = (*seen, made_at["epoch"], made_at["lsn"])
        if seen in self._seen:
            return
        self._equal(mart, entry, inputs, made_at, where)
        self._seen.add(seen)
        self.names.add(entry["table"])
        self.versions += 1

    def _equal(
        self, mart: Mart, entry: Row, inputs: Mapping[str, Row], made_at: Row, where: str
    ) -> None:
        moment = {"epoch": made_at.get("epoch"), "lsn": made_at["lsn"]}
        with _loaded({**inputs, "t": entry}) as database:
            wanted = _rows(database, mart.wanted)
            found = _rows(database, mart.stored.format(**moment))
        made = f"{where}, made at cut {made_at['cut']}"
        assert wanted == found, f"{made}, lacks {wanted - found} and has {found - wanted}"
        if entry["table"] in HISTORIES:
            past = self._past.setdefault(entry["table"], {})
            (read,) = inputs.values()
            past[(made_at["epoch"], made_at["lsn"])] = Told(found, read.get("reading") or 0)


def versions_made(entry: Row) -> int:
    """Return how many versions a history has that an update made."""
    with _loaded({"t": entry}) as database:
        ((count,),) = _rows(database, _VERSIONS)
    return int(count)


def _inputs(mart: Mart, row: Row) -> dict[str, Row] | None:
    """Return the entries of the inputs by name; None if a derived one is at another cut."""
    entries = {entry["table"]: entry for entry in (*row["tables"], *(row["derived"] or ()))}
    found = {name.partition(".")[2]: entries.get(name) for name in mart.inputs}
    at = {name: entry for name, entry in found.items() if entry and entry["version"] >= 0}
    late = any(entry.get("at_cut", row["cut"]) != row["cut"] for entry in at.values())
    return None if late or len(at) < len(found) else at


@contextmanager
def _loaded(entries: Mapping[str, Row]) -> Iterator[duckdb.DuckDBPyConnection]:
    """Give a database with the versions of the entries, by name."""
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        for name, entry in entries.items():
            opened = DeltaTable(entry["path"], version=entry["version"])
            read = QueryBuilder().register("t", opened).execute("SELECT * FROM t").read_all()
            database.register("given", pa.table(read))
            # As a table of its own: of Arrow's it cannot filter texts.
            database.execute(f'CREATE TABLE "{name}" AS SELECT * FROM given')
        yield database


def _rows(database: duckdb.DuckDBPyConnection, query: str) -> Rows:
    found = database.sql(query).to_arrow_table()
    # By place: two columns may have one name.
    return Counter(zip(*(column.to_pylist() for column in found.columns), strict=True))
