"""Open every row of the ledger as a reader would, with delta-rs alone, and judge it."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from tests.faults.bank.armed import Armed
from tests.faults.bank.bank import TABLES
from tests.faults.bank.promises import MARKED, assert_none_fell, judged
from tests.faults.bank.recomputed import Readings, Recomputed, versions_made

Row = dict[str, Any]
_AT_THE_CUT: Final = ("streaming", "degraded")


def _is_complete(row: Row) -> bool:
    """Return whether the cut has the rows of the first snapshot, without which it is flagged."""
    states = {entry["state"] for entry in row["tables"]}
    return row["lsn"] is not None and "snapshotting" not in states


@dataclass
class Walk:
    """The ledger's rows seen so far; ``versions`` counts opened versions of tables."""

    installation: Armed
    seen: dict[int, Row] = field(default_factory=dict)
    commits: dict[int, tuple[int, int]] = field(default_factory=dict)
    """WAL positions of the transactions, by mark: see ``bank.Commits``."""
    walked: int = 0
    versions: int = 0
    kills: int = 0
    derived: Recomputed = field(default_factory=Recomputed)
    _counters: Mapping[int, int] = field(default_factory=dict)

    @property
    def summary(self) -> str:
        """Return the number of kills, cuts and versions, for the report."""
        return (
            f"{self.kills} kills, {self.walked} cuts walked, {self.versions} versions opened, "
            f"{self.derived.versions} of derived tables calculated again"
        )

    def note(self) -> None:
        """Record the ledger's rows; fail if one seen earlier has changed or is gone."""
        rows = query(self.installation, "_wal2lake/ledger", "SELECT * FROM t ORDER BY cut")
        cuts = [row["cut"] for row in rows]
        first = self._given_up(rows) + 1
        assert cuts == list(range(first, first + len(cuts))), "a cut is missing or there twice"
        by_cut = {row["cut"]: row for row in rows}
        kept = {cut: row for cut, row in self.seen.items() if cut >= first}
        changed = [cut for cut, row in kept.items() if by_cut.get(cut) != row]
        assert changed == [], f"rows of the ledger changed after they were published: {changed}"
        self.seen = by_cut

    def _given_up(self, rows: Sequence[Row]) -> int:
        """Return the newest cut that is gone because an operation has given up the past."""
        first: int = rows[0]["cut"] if rows else 1
        if first > 1:
            asked = "SELECT command FROM t WHERE command = 'forget'"
            assert query(self.installation, "_wal2lake/operations", asked), "old cuts are gone"
        return first - 1

    def go_on(self) -> None:
        """Judge the rows that have not been judged yet."""
        self.note()
        for cut in range(max(self.walked + 1, min(self.seen)), max(self.seen) + 1):
            row = self.seen[cut]
            before = self.seen.get(cut - 1)
            if before is not None and before["lsn"] is not None:
                assert row["lsn"] >= before["lsn"], f"cut {cut} lies before the one before it"
            if _is_complete(row):
                self._judge(row)
            self.walked = cut
        self.derived.look_back(self.seen[self.walked], self._readings())

    def _readings(self) -> Readings:
        found: dict[str, list[tuple[int, int]]] = defaultdict(list)
        if not DeltaTable.is_deltatable(f"{self.installation.lake}/_wal2lake/readings"):
            return found
        for row in query(self.installation, "_wal2lake/readings", "SELECT * FROM t"):
            found[row["table"]].append((row["number"], row["lsn"]))
        return found

    def _judge(self, row: Row) -> None:
        entries = {entry["table"]: entry for entry in row["tables"]}
        where = f"cut {row['cut']}"
        # A table that is being read again is at an older cut and flagged.
        marked = all(entries[name]["state"] in _AT_THE_CUT for name in MARKED)

        def rows(table: str, *columns: str) -> list[tuple[Any, ...]]:
            return self._rows(entries[table], columns)

        self.derived.judge(row, self.seen)
        kept = judged(rows, where, marks=marked)
        assert_none_fell(self._counters, kept.counters, where)
        self._counters = kept.counters
        if kept.marks is not None:
            self._judge_commits(set(kept.marks), row["lsn"], where)
            _judge_versions(len(kept.marks), row, where)

    def _judge_commits(self, marks: set[int], lsn: int, where: str) -> None:
        inside = {mark for mark, (_, after) in self.commits.items() if after <= lsn}
        beyond = {mark for mark, (before, _) in self.commits.items() if before > lsn}
        assert inside <= marks, f"{where}: a transaction before its LSN is missing"
        assert not beyond & marks, f"{where}: a transaction after its LSN is there"

    def _rows(self, entry: Row, columns: Sequence[str]) -> list[tuple[Any, ...]]:
        self.versions += 1
        opened = DeltaTable(entry["path"], version=entry["version"])
        rows = queried(opened, f"SELECT {', '.join(columns)} FROM t")
        return [tuple(row.values()) for row in rows]


def _judge_versions(marks: int, row: Row, where: str) -> None:
    """Assert that the history of the accounts has two versions of each transaction."""
    for entry in row.get("derived") or ():
        if entry["table"] == "kept.accounts_past" and entry["at_cut"] == row["cut"]:
            made = versions_made(entry)
            assert made == 2 * marks, f"{where}: {made} versions of {marks} transactions"


class Unflagged(Walk):
    """A walk that judges only cuts at which no table of the bank is flagged."""

    def _judge(self, row: Row) -> None:
        mine = {f"bank.{table}" for table in TABLES}
        states = {entry["state"] for entry in row["tables"] if entry["table"] in mine}
        if states == {"streaming"}:
            super()._judge(row)


def query(installation: Armed, path: str, text: str) -> list[Row]:
    """Run a query over ``t``, the newest version of a table of the lake."""
    return queried(DeltaTable(f"{installation.lake}/{path}"), text)


def queried(opened: DeltaTable, text: str) -> list[Row]:
    """Run a query over ``t``, an opened version of a table."""
    rows: list[Row] = pa.table(
        QueryBuilder().register("t", opened).execute(text).read_all()
    ).to_pylist()
    return rows
