"""A version of a derived table that is not what its inputs give is seen, here made by hand."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.faults.bank.marts import MARTS
from tests.faults.bank.recomputed import Readings, Recomputed, versions_made

NOON: Final = datetime(2024, 1, 31, 12, tzinfo=UTC)
LSN: Final = 50
Values = Sequence[Mapping[str, Any]]


def entry(version: int, amount: int, seconds: int, counter: int = 1) -> dict[str, Any]:
    at = NOON + timedelta(seconds=seconds)
    return {"counter": counter, "version": version, "at": at, "amount": amount}


def window(seconds: int, n: int, amount: int) -> dict[str, Any]:
    return {"window_start": NOON + timedelta(seconds=seconds), "n": n, "amount": amount}


def late(version: int, amount: int, seconds: int, effect: str, offset: int = 1) -> dict[str, Any]:
    start = NOON + timedelta(seconds=seconds)
    key = {"counter": 1, "version": version, "amount": amount}
    return {**key, "_window_start": start, "_effect": effect, "_offset": offset}


def past(balance: int, since: int, until: int | None, op: str = "u") -> dict[str, Any]:
    own = {"_from_lsn": since, "_to_lsn": until, "_op": op, "_epoch": 1}
    return {"id": 1, "balance": balance, **own}


VISITS: Final = [{"who": "a", "page": 1, "at": NOON}, {"who": "a", "page": 1, "at": NOON}]
INPUTS: Final[dict[str, Values]] = {
    "bank.visits": VISITS,
    "bank.debits": [{"mark": 1, "amount": 3}, {"mark": 2, "amount": 4}],
    "bank.credits": [{"mark": 1, "amount": 3}, {"mark": 2, "amount": 4}],
    "bank.counters": [{"name": 1, "n": 5}, {"name": 2, "n": 6}],
    "bank.ring": [{"id": 1, "name": 2}],
    # The third is missing, the fifth was late and the sixth deleted after its window was final.
    # The fourth was late and was admitted.
    "bank.entries": [entry(1, 2, 0), entry(2, 5, 9), entry(4, 7, 10), entry(5, 1, 3)],
    "bank.accounts": [{"id": 1, "balance": 7}],
    "bank.flicker": [{"id": 1, "n": 7}],
    "bank.odd": [{"id": 1, "day": NOON.date()}, {"id": 2, "day": NOON.date()}],
}
DERIVED: Final[dict[str, Values]] = {
    "kept.windows__late": [
        late(5, 1, 0, "left out"),
        late(6, 4, 0, "kept"),
        late(4, 7, 10, "left out"),
        late(4, 7, 10, "admitted", offset=2),
    ],
    "kept.pages": [{"who": "a", "page": 1, "n": 2, "last": NOON}],
    "kept.follows": [{"name": 1, "n": 5, "follows": 2}, {"name": 2, "n": 6, "follows": None}],
    "kept.moves": [{"mark": m, "debited": m + 2, "credited": m + 2} for m in (1, 2)],
    "kept.total": [{"n": 2, "debited": 7, "credited": 7}],
    "kept.minutes": [{"window_start": NOON, "page": 1, "n": 2}],
    "kept.days": [{"day": NOON.date(), "n": 2}],
    "kept.windows": [window(0, 3, 11), window(10, 1, 7)],
    "kept.risen": [{"counter": 1, "first": 1, "more": 2, "top": 7}],
    "kept.sums": [{"counter": 1, "version": 2, "entries": 2, "amount": 7}],
    "kept.sums__faults": [{"counter": 1, "version": 3, "fault": "gap"}],
    "kept.accounts_past": [past(5, 1, 20, "r"), past(6, 20, LSN), past(7, LSN, None)],
    "kept.flicker_past": [
        {"n": row.pop("balance"), **row} for row in (past(5, 1, LSN), past(7, LSN, None))
    ],
}


class Lake:
    """Cuts of a lake with all derived tables."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.cuts: dict[int, dict[str, Any]] = {}
        for name, rows in {**INPUTS, **DERIVED}.items():
            self.put(name, rows)

    def put(self, name: str, rows: Values) -> None:
        types = {"follows": pa.int64(), "_to_lsn": pa.int64()}
        names = [*rows[0]] if rows else [*{**INPUTS, **DERIVED}[name][0]]
        columns = {each: pa.array([row[each] for row in rows], types.get(each)) for each in names}
        write_deltalake(self._path(name), pa.table(columns), mode="overwrite")

    def publish(self, lsn: int, at_cut: int | None = None) -> dict[str, Any]:
        cut = len(self.cuts) + 1
        derived = [{**self._entry(name), "at_cut": at_cut or cut} for name in DERIVED]
        tables = [self._entry(name) for name in INPUTS]
        row = {"cut": cut, "epoch": 1, "lsn": lsn, "tables": tables, "derived": derived}
        self.cuts[cut] = row
        return row

    def _path(self, name: str) -> str:
        return str(self.folder / name.replace(".", "/"))

    def _entry(self, name: str) -> dict[str, Any]:
        path = self._path(name)
        version = DeltaTable(path).version()
        return {"table": name, "path": path, "version": version, "state": "streaming"}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


def test_all_tables_of_a_right_lake_are_compared_once(lake: Lake) -> None:
    recomputed = Recomputed()

    for row in (lake.publish(LSN), lake.publish(LSN)):
        recomputed.judge(row, lake.cuts)
        recomputed.look_back(row, {})

    assert recomputed.names == set(MARTS)
    assert recomputed.versions == len(MARTS)


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("kept.pages", [{"who": "a", "page": 1, "n": 3, "last": NOON}]),
        ("kept.follows", DERIVED["kept.follows"][:1]),
        ("kept.moves", [*DERIVED["kept.moves"], DERIVED["kept.moves"][0]]),
        ("kept.total", [{"n": 1, "debited": 7, "credited": 7}]),
        ("kept.minutes", []),
        ("kept.windows", [window(0, 4, 12), window(10, 1, 7)]),  # with the late one
        ("kept.windows", [window(0, 2, 7), window(10, 1, 7)]),  # without the deleted one
        ("kept.risen", [{"counter": 1, "first": 1, "more": 1, "top": 5}]),
        ("kept.sums", [{"counter": 1, "version": 4, "entries": 3, "amount": 14}]),  # over the gap
        ("kept.sums__faults", []),
        ("kept.accounts_past", [past(5, 1, 20, "r"), past(6, 20, None)]),
        ("kept.accounts_past", [past(6, 20, None), past(7, LSN, None)]),  # two of now
        ("kept.flicker_past", DERIVED["kept.flicker_past"][:1]),
    ],
)
def test_a_version_with_other_rows_is_seen(lake: Lake, name: str, rows: Values) -> None:
    lake.put(name, rows)

    with pytest.raises(AssertionError, match=f"cut 1: {name}, made at cut 1, lacks"):
        Recomputed().judge(lake.publish(LSN), lake.cuts)


def test_a_lagging_version_is_judged_by_the_cut_that_it_is_at(lake: Lake) -> None:
    first = lake.publish(LSN)
    lake.put("bank.visits", VISITS[:1])
    recomputed = Recomputed()
    recomputed.judge(lake.publish(LSN + 10, at_cut=1), lake.cuts)
    assert recomputed.names == set(MARTS)

    with pytest.raises(AssertionError, match=r"kept\.pages, made at cut 3"):
        recomputed.judge(lake.publish(LSN + 20), lake.cuts)
    assert first["cut"] == 1


def changed_past(lake: Lake) -> tuple[Recomputed, dict[str, Any]]:
    """Judge a history, and another at a later cut that says something else of the first one."""
    recomputed = Recomputed()
    recomputed.judge(lake.publish(LSN), lake.cuts)
    lake.put("bank.accounts", [{"id": 1, "balance": 8}])
    lake.put("kept.accounts_past", [past(6, 20, 70), past(8, 70, None)])
    later = lake.publish(80)
    recomputed.judge(later, lake.cuts)
    return recomputed, later


@pytest.mark.parametrize(
    "readings",
    [
        {},
        {"bank.accounts": [(0, LSN)]},  # not a later one
        {"bank.accounts": [(1, LSN + 1)]},  # behind it
        {"bank.flicker": [(1, LSN)]},
    ],
)
def test_a_history_that_loses_a_version_of_before_is_seen(lake: Lake, readings: Readings) -> None:
    recomputed, later = changed_past(lake)

    with pytest.raises(AssertionError, match=f"other rows of LSN {LSN}"):
        recomputed.look_back(later, readings)


def test_a_reading_may_correct_what_a_history_said_of_its_lsn_and_later(lake: Lake) -> None:
    recomputed, later = changed_past(lake)
    readings = {"bank.accounts": [(1, LSN)]}
    recomputed.look_back(later, readings)

    lake.put("kept.accounts_past", [past(9, 20, 70), past(8, 70, None)])
    with pytest.raises(AssertionError, match=f"other rows of LSN {LSN}"):  # once
        recomputed.look_back(lake.publish(90), readings)


def test_versions_are_counted_by_what_made_them(lake: Lake) -> None:
    derived = {each["table"]: each for each in lake.publish(LSN)["derived"]}

    assert versions_made(derived["kept.accounts_past"]) == 2
