"""Every row of the ledger is opened as a reader would, and by delta-rs alone, and judged."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder

from tests.faults.armed import Armed
from tests.faults.bank import BULK, PARTS, RING, TOTAL

Row = dict[str, Any]
MARKED: Final = ("bank.debits", "bank.credits", "bank.audit")
_AT_THE_CUT: Final = ("streaming", "degraded")


@dataclass
class Walk:
    """What was seen of the ledger until now; ``versions`` of tables were opened."""

    installation: Armed
    seen: dict[int, Row] = field(default_factory=dict)
    commits: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Of the transactions, by mark: ``bank.Commits``."""
    walked: int = 0
    versions: int = 0
    kills: int = 0
    _counters: Mapping[int, int] = field(default_factory=dict)

    @property
    def told(self) -> str:
        return f"{self.kills} kills, {self.walked} cuts walked, {self.versions} versions opened"

    def note(self) -> None:
        """Take note of the rows there are: none that was seen before has changed or is gone."""
        found = query(self.installation, "_wal2lake/ledger", "SELECT * FROM t ORDER BY cut")
        cuts = [row["cut"] for row in found]
        assert cuts == list(range(1, len(cuts) + 1)), "a cut is missing or there twice"
        by_cut = {row["cut"]: row for row in found}
        changed = [cut for cut, row in self.seen.items() if by_cut.get(cut) != row]
        assert changed == [], f"rows of the ledger changed after they were published: {changed}"
        self.seen = by_cut

    def go_on(self) -> None:
        """Judge the rows that were not judged yet."""
        self.note()
        for cut in range(self.walked + 1, len(self.seen) + 1):
            row = self.seen[cut]
            before = self.seen.get(cut - 1)
            if before is not None and before["lsn"] is not None:
                assert row["lsn"] >= before["lsn"], f"cut {cut} lies before the one before it"
            if row["lsn"] is not None:  # until then the first snapshot is not whole
                self._judge(row)
            self.walked = cut

    def _judge(self, row: Row) -> None:
        entries = {entry["table"]: entry for entry in row["tables"]}
        where = f"cut {row['cut']}"
        ((total,),) = self._rows(entries["bank.accounts"], "SELECT sum(balance) AS total FROM t")
        assert total == TOTAL, f"{where}: the balances are {total} together"
        self._judge_marks(entries, row["lsn"], where)
        found = self._rows(entries["bank.counters"], "SELECT name, n FROM t")
        counters = {name: int(n) for name, n in found}
        assert len(counters) == len(found), f"{where}: a counter is there twice"
        fell = [n for n, before in self._counters.items() if counters.get(n, -1) < before]
        assert fell == [], f"{where}: counters are lower than at the cut before: {fell}"
        self._counters = counters
        self._judge_together(entries, where)

    def _judge_together(self, entries: Mapping[str, Row], where: str) -> None:
        """What changes in one transaction only, by statements over several rows."""
        ring = self._rows(entries["bank.ring"], "SELECT id, name FROM t")
        for found in ([key for key, _ in ring], [name for _, name in ring]):
            assert sorted(found) == list(range(1, RING + 1)), f"{where}: the ring is {ring}"
        filled = self._rows(entries["bank.emptied"], "SELECT part, filling FROM t")
        parts = sorted(part for part, _ in filled)
        assert parts == list(range(1, PARTS + 1)), f"{where}: parts of a filling: {parts}"
        bulk = self._rows(entries["bank.bulk"], "SELECT id, change FROM t")
        assert len(bulk) == BULK, f"{where}: {len(bulk)} rows of the bulk"
        for name, rows in (("filling", filled), ("bulk", bulk)):
            changes = {change for _, change in rows}
            assert len(changes) == 1, f"{where}: a {name} is there in part: {changes}"

    def _judge_marks(self, entries: Mapping[str, Row], lsn: int, where: str) -> None:
        mine = [entries[name] for name in MARKED]
        if any(entry["state"] not in _AT_THE_CUT for entry in mine):
            return  # one that is read again stands at an older cut, and says so
        debits, credits_, audited = (
            sorted(mark for (mark,) in self._rows(entry, "SELECT mark FROM t")) for entry in mine
        )
        assert len(set(debits)) == len(debits), f"{where}: a mark is there twice"
        assert debits == credits_ == audited, f"{where}: a transaction is there in part"
        inside = {mark for mark, (_, after) in self.commits.items() if after <= lsn}
        beyond = {mark for mark, (before, _) in self.commits.items() if before > lsn}
        assert inside <= set(debits), f"{where}: a transaction before its LSN is missing"
        assert not beyond & set(debits), f"{where}: a transaction after its LSN is there"

    def _rows(self, entry: Row, text: str) -> list[tuple[Any, ...]]:
        self.versions += 1
        opened = DeltaTable(entry["path"], version=entry["version"])
        return [tuple(row.values()) for row in _queried(opened, text)]


def query(installation: Armed, path: str, text: str) -> list[Row]:
    """Rows of the newest version of a table of the lake."""
    return _queried(DeltaTable(str(installation.folder / "lake" / path)), text)


def _queried(opened: DeltaTable, text: str) -> list[Row]:
    found: list[Row] = pa.table(
        QueryBuilder().register("t", opened).execute(text).read_all()
    ).to_pylist()
    return found
