"""Histories, patterns and folds are the same bytes in any number of cuts, and after a rebuild."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest
from deltalake import DeltaTable

from cdc.derive.definition.definition import Definition
from cdc.derive.history.history import History
from cdc.derive.keep.derived_tables import DerivedTables
from cdc.derive.pattern.matcher import Skip
from cdc.lake.records.derived_entry import DerivedEntry
from cdc.lake.table.positions import KEY_PROPERTY
from cdc.state.derived_requests import rebuilds
from cdc.tables import TableId
from tests.events.source import TABLE, act
from tests.unit.derive.definition.reading import definition
from tests.unit.derive.fold.bank import BALANCE, EVENTS, fold
from tests.unit.derive.keep import test_folds_by_hand as folds
from tests.unit.derive.keep import test_patterns_by_hand as patterns
from tests.unit.derive.logged_lake import LoggedLake
from tests.unit.derive.small_lake import SmallLake, contents, defined, rows_of

STEPS: Final = 100
CUTS: Final = (1, 7, 30)
Row = dict[str, Any]
in_any_cuts = pytest.mark.parametrize(
    "cuts", [CUTS, pytest.param((1, 100), marks=pytest.mark.deep)]
)


def ends(cuts: int) -> Iterator[int]:
    """Yield how many steps each cut has."""
    return (STEPS * (cut + 1) // cuts for cut in range(cuts))


def made(kept: DerivedTables, lake: SmallLake, tables: Sequence[Definition]) -> list[DerivedEntry]:
    """Return the tables at the next cut, which all have come to."""
    entries = list(kept.entries(lake.row()))
    assert [(one.state, one.reason) for one in entries] == [("streaming", "")] * len(tables)
    return entries


def the_same_after_a_rebuild(
    kept: DerivedTables, lake: SmallLake, tables: Sequence[Definition], last: Sequence[DerivedEntry]
) -> list[bytes]:
    """Return the bytes of the tables; those that are made anew have them too."""
    found = [contents(entry) for entry in last]
    for one in tables:
        rebuilds(lake.folder).ask(one.table)
    anew = made(kept, lake, tables)
    assert not any(rebuilds(lake.folder).is_asked(one.table) for one in tables)
    assert [contents(entry) for entry in anew] == found
    return found


def rows_after(steps: int, draw: Callable[[Random, int], Row]) -> list[Row]:
    """Return rows that were inserted, updated and deleted in so many steps."""
    random, rows = Random(7), dict[int, Row]()
    for step in range(steps):
        for _ in range(random.randrange(1, 4)):
            chance, some = random.random(), random.choice([*rows, step])
            if chance < 0.08:
                rows.pop(some, None)
            else:
                new = some if chance < 0.3 else max(rows, default=0) + 1
                rows[new] = draw(random, new)
    return list(rows.values())


def in_cuts(
    lake: SmallLake, tables: Sequence[Definition], draw: Callable[[Random, int], Row], cuts: int
) -> tuple[list[bytes], list[DerivedEntry]]:
    """Return the tables' bytes and entries at the last of so many cuts over the only input."""
    (name,) = lake.schemas
    lake.set(**{name: []})
    table = DeltaTable(lake.path(TableId("shop", name)))
    table.alter.set_table_properties({KEY_PROPERTY: '["id"]'}, raise_if_not_exists=False)
    with closing(lake.keep(*tables)) as kept:
        for end in ends(cuts):
            rows = rows_after(end, draw)
            Random(cuts).shuffle(rows)  # their order in the files has no part
            lake.set(**{name: rows})
            last = made(kept, lake, tables)
        return the_same_after_a_rebuild(kept, lake, tables, last), last


def payment(random: Random, number: int) -> Row:
    minute = timedelta(minutes=random.randrange(12))
    return {
        "id": number,
        "card": random.choice(["1", "2", "3", "4", "5", None]),
        "at": random.choice([None, *[patterns.NOON + minute] * 9]),
        "amount": random.choice([None, *map(Decimal, ("0.50", "0.50", "6", "6", "9.99"))]),
        "country": random.choice(["DE", "BR", "BR", None]),
    }


@in_any_cuts
def test_patterns(tmp_path: Path, cuts: Sequence[int]) -> None:
    text, skip = patterns.PATTERNS[1], Skip.TO_NEXT_ROW
    written = patterns.FRAUD.format(skip=patterns.SKIPS[skip], pattern=text)
    fraud = definition(written, "marts.fraud.sql")
    found = []
    for number in cuts:
        lake = SmallLake(tmp_path / str(number), {"payments": patterns.SCHEMA})
        same, (entry,) = in_cuts(lake, [fraud], payment, number)
        found.append(same)

    rows = [tuple(row.values()) for row in rows_after(STEPS, payment)]
    assert Counter(rows_of(entry)) == patterns.by_hand(rows, text, skip)
    assert len(rows_of(entry)) > 3
    assert found == found[:1] * len(cuts)


def event(random: Random, number: int) -> Row:
    """Return an event of an account, each second of which comes before the one it follows."""
    place, account = divmod(number, 12)
    version = (place ^ 1) + random.choice([*[1] * 40, 0, 2])
    kind = "opened" if version == 1 else random.choice(folds.KINDS)
    amount = None if kind == "broken" else Decimal(random.randrange(400)) / 100
    return {
        "id": number,
        "account_id": account or None,
        "version": version,
        "kind": kind,
        "amount": amount,
    }


@in_any_cuts
def test_folds(tmp_path: Path, cuts: Sequence[int]) -> None:
    found = []
    for number in cuts:
        lake = SmallLake(tmp_path / str(number), {"account_events": EVENTS})
        same, (states, faults) = in_cuts(lake, fold(BALANCE), event, number)
        found.append(same)

    expected = folds.by_hand(rows_after(STEPS, event))
    assert Counter(rows_of(states)) == expected[0]
    assert Counter(row[:3] for row in rows_of(faults)) == expected[1]
    assert min(map(len, expected)) > 3
    assert found == found[:1] * len(cuts)


PAST: Final = defined("past", "", str(TABLE), hash="past", history=History(track=("n", "big")))


@in_any_cuts
def test_histories(tmp_path: Path, cuts: Sequence[int]) -> None:
    """Each step is a transaction; the log is the same, in as many files as there are cuts."""
    found = []
    for number in cuts:
        lake, random, done = LoggedLake(tmp_path / str(number), {}), Random(7), 0
        with closing(lake.derived(PAST)) as kept:
            for end in ends(number):
                for _ in range(done, end):
                    transaction(lake, random)
                done = end
                lake.land()
                last = made(kept, lake, [PAST])
            found.append(the_same_after_a_rebuild(kept, lake, [PAST], last))

    past = rows_of(last[0])
    now = Counter(row[:3] for row in past if row[9] is None)
    assert now == Counter((row["id"], row["n"], row["big"]) for row in lake.source.rows.values())
    assert len(past) > STEPS
    assert found == found[:1] * len(cuts)


def transaction(lake: LoggedLake, random: Random) -> None:
    for _ in range(random.randrange(1, 4)):
        act(lake.source, random, range(6))
    if random.random() < 0.03:
        lake.source.truncate()
    lake.source.commit()
