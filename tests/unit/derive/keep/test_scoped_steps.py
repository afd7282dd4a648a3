"""In the lake, a table with a scope is kept by scoped steps, and says when it was not."""

import json
import shutil
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from cdc.derive.engine.calculator import Calculator
from cdc.derive.engine.output_types import Output
from cdc.derive.keep.derived_tables import DerivedTables
from cdc.derive.scope.scope import DIRTY, SCHEMA, Scope
from cdc.derive.step.reach import find_dirty
from cdc.lake.records.derived_entry import DerivedEntry
from cdc.tables import TableId
from tests.unit.derive.events import EVENTS, read, row
from tests.unit.derive.orders import one, order
from tests.unit.derive.small_lake import SmallLake, rows_of

BY_WHO = read("SELECT who, count(*) AS n, sum(id) AS ids FROM shop.orders GROUP BY who")
PATTERN = read("""/* ---
kind: pattern
within: 1 hour
--- */
SELECT * FROM shop.events MATCH_RECOGNIZE (
  PARTITION BY who ORDER BY ts, id MEASURES A.id AS a, B.id AS b
  ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW
  PATTERN (A B) DEFINE B AS B.id > A.id)""")


def costs(entry: DerivedEntry) -> list[dict[str, Any]]:
    """Return what the table's commits say of their cost, oldest first."""
    history = DeltaTable(entry.path).history()
    found = [json.loads(commit["userMetadata"])["cost"] for commit in reversed(history)]
    return [{name: cost[name] for name in ("mode", "why", "changed", "keys")} for cost in found]


def scoped(changed: int, keys: int) -> dict[str, Any]:
    return {"mode": "scoped", "why": "", "changed": changed, "keys": keys}


def whole(why: str) -> dict[str, Any]:
    return {"mode": "whole", "why": why, "changed": 0, "keys": 0}


def orders(count: int) -> list[dict[str, Any]]:
    return [order(number, f"w{number % 10}") for number in range(count)]


def test_a_step_calculates_the_groups_that_have_changed(lake: SmallLake) -> None:
    """Hazard 39: no offset says that these rows have changed, as after a resnapshot."""
    with closing(lake.keep(BY_WHO)) as kept:
        lake.set(orders=orders(50), people=[])
        one(kept, lake)
        lake.set(orders=[*orders(50)[2:], order(60, "w5"), order(70, None)])
        entry = one(kept, lake)

    (built, step) = costs(entry)
    assert (built, step["mode"], step["keys"]) == (whole("it is built"), "scoped", 4)
    assert [row[:2] for row in rows_of(entry)][-1] == (None, 1)
    assert ("w5", 6, sum(range(5, 50, 10)) + 60) in rows_of(entry)
    assert len(rows_of(entry)) == entry.rows == 11


def test_the_files_of_an_input_are_written_anew(lake: SmallLake) -> None:
    """Hazard 40: nothing is committed, and the next change is found."""
    with closing(lake.keep(BY_WHO)) as kept:
        lake.set(orders=orders(20), people=[])
        first = one(kept, lake)
        DeltaTable(lake.path(BY_WHO.inputs[0])).optimize.compact()
        lake.set(orders=list(reversed(orders(20))))
        second = one(kept, lake)
        lake.set(orders=orders(21))
        third = one(kept, lake)

    assert second.version == first.version
    assert [cost["keys"] for cost in costs(third)] == [0, 1]


def test_old_files_of_an_input_are_gone(lake: SmallLake) -> None:
    """Hazard 40: what has changed is not known, so all is calculated."""
    with closing(lake.keep(BY_WHO)) as kept:
        lake.set(orders=orders(20), people=[])
        one(kept, lake)
        lake.set(orders=orders(21))
        DeltaTable(lake.path(BY_WHO.inputs[0])).vacuum(
            retention_hours=0, enforce_retention_duration=False, dry_run=False
        )
        entry = one(kept, lake)

    assert costs(entry)[-1] == whole("what has changed in shop.orders is not known, or too much")
    assert len(rows_of(entry)) == 10
    assert ("w0", 3, 30) in rows_of(entry)


def test_a_job_that_starts_again_goes_on_from_the_commit(lake: SmallLake) -> None:
    """Hazard 50: what the commit says of its inputs counts, whatever was published."""
    lake.set(orders=orders(20), people=[])
    with closing(lake.keep(BY_WHO)) as kept:
        one(kept, lake)
    lake.set(orders=orders(21))
    lake.set(orders=orders(22))
    with closing(lake.keep(BY_WHO)) as kept:
        entry = one(kept, lake)

    assert costs(entry)[-1]["mode"] == "scoped"
    assert costs(entry)[-1]["keys"] == 2
    assert {("w0", 3, 30), ("w1", 3, 33)} <= set(rows_of(entry))


def test_changes_without_effect_are_not_looked_at_again(lake: SmallLake) -> None:
    wide = read("SELECT who, min(id) AS least FROM shop.orders GROUP BY who")
    with closing(lake.keep(wide)) as kept:
        lake.set(orders=orders(5), people=[])
        one(kept, lake)
        for number in range(1, 4):
            lake.set(orders=[*orders(5), *(order(90 + n, "w1") for n in range(number))])
            one(kept, lake)
        lake.set(orders=orders(5)[1:])
        entry = one(kept, lake)

    assert costs(entry)[-1] == scoped(changed=8 + 4, keys=2)


def test_changes_that_lead_to_most_rows_are_calculated_as_a_whole(lake: SmallLake) -> None:
    many = [order(number, f"w{number}") for number in range(300)]
    with closing(lake.keep(BY_WHO)) as kept:
        lake.set(orders=many, people=[])
        one(kept, lake)
        lake.set(orders=many[150:])
        entry = one(kept, lake)

    last = costs(entry)[-1]
    assert (last["mode"], last["why"]) == ("whole", "the changes lead to a large part of its rows")
    assert len(rows_of(entry)) == 150


def test_a_pattern_is_sought_in_changed_partitions(tmp_path: Path) -> None:
    """Hazard 26: the second event of a match goes, and comes again."""
    lake = SmallLake(tmp_path, {"events": EVENTS})
    everyone = [(n, who, f"10:{n:02}") for n in range(1, 4) for who in ("a", "b", None)]
    cuts = [everyone, [e for e in everyone if e[:2] != (2, "a")], everyone]
    found = []
    with closing(lake.keep(PATTERN)) as kept:
        for events in cuts:
            lake.set(events=[row(event) for event in events])
            found.append(rows_of(one(kept, lake)))
        entry = one(kept, lake)

    assert found[0] == found[2] == [("a", 1, 2), ("b", 1, 2), (None, 1, 2)]
    assert found[1] == [("a", 1, 3), ("b", 1, 2), (None, 1, 2)]
    assert [cost["keys"] for cost in costs(entry)] == [0, 1, 1]


def test_a_key_is_unique_outside_the_scope_too(lake: SmallLake) -> None:
    """Hazard 54: the twin is in a group that has not changed."""
    keyed = read(
        "/* ---\nkey: [n]\n--- */\nSELECT who, count(*) AS n FROM shop.orders GROUP BY who"
    )
    with closing(lake.keep(keyed)) as kept:
        lake.set(orders=[order(1, "a"), order(2, "b"), order(3, "b")], people=[])
        good = one(kept, lake)
        lake.set(orders=[order(1, "a"), order(2, "b")])
        bad = one(kept, lake)

    assert good.state == "streaming"
    assert (bad.state, bad.reason) == (
        "stopped",
        (
            "its key (n) is not unique: 2 rows have the same; "
            "remedy: name the columns in key that tell its rows apart"
        ),
    )


@pytest.mark.parametrize("gone", ["input", "table"])
def test_another_table_at_the_same_path_is_calculated_as_a_whole(
    lake: SmallLake, gone: str
) -> None:
    with closing(lake.keep(BY_WHO)) as kept:
        lake.set(orders=orders(20), people=[])
        before = one(kept, lake)
        path = lake.path(BY_WHO.inputs[0]) if gone == "input" else before.path
        shutil.rmtree(path)
        lake.set(orders=orders(20))
        lake.set(orders=orders(21))
        entry = one(kept, lake)

    assert costs(entry)[-1]["mode"] == "whole"
    assert len(rows_of(entry)) == 10
    assert ("w0", 3, 30) in rows_of(entry)


def test_a_cross_check_stops_a_table_whose_scope_is_too_small(
    lake: SmallLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.cross_check = 3
    with closing(lake.keep(BY_WHO)) as kept:
        lake.set(orders=orders(20), people=[])
        one(kept, lake)
        lake.set(orders=orders(21))
        checked = _cuts(kept, lake, [22])[0]

        def too_few(
            database: Calculator,
            scope: Scope,
            keys: Sequence[Output],
            changed: set[TableId],
            closing: str,
        ) -> int:
            count = find_dirty(database, scope, keys, changed, closing)
            database.run(f"DELETE FROM {SCHEMA}.{DIRTY}")
            return count

        monkeypatch.setattr("cdc.derive.step.scoped.find_dirty", too_few)
        lake.cut = 5
        lake.set(orders=orders(23))
        stopped = one(kept, lake)

    assert checked.state == "streaming"
    assert stopped.state == "stopped"
    assert stopped.reason == (
        "a scoped step to cut 6 has 2 other rows than its query; "
        "remedy: this is a bug of wal2lake: set refresh: full in the definition, report it"
    )
    assert stopped.version == checked.version


def _cuts(kept: DerivedTables, lake: SmallLake, many: Sequence[int]) -> list[DerivedEntry]:
    found = []
    for count in many:
        lake.set(orders=orders(count))
        found.append(one(kept, lake))
    return found


@pytest.mark.parametrize("most", [30, pytest.param(100, marks=pytest.mark.deep)])
def test_the_number_of_cuts_plays_no_part(tmp_path: Path, lake: SmallLake, most: int) -> None:
    """Hazard 12, for tables: the same rows after one cut, after seven and after many."""
    lasts = []
    for number in (1, 7, most):
        other = SmallLake(tmp_path / str(number), lake.schemas)
        other.set(people=[])
        with closing(other.keep(BY_WHO)) as kept:
            found = _cuts(kept, other, [120 * (n + 1) // number for n in range(number)])
        lasts.append(rows_of(found[-1]))

    assert lasts[0] == lasts[1] == lasts[2]
    assert len(lasts[0]) == 10
