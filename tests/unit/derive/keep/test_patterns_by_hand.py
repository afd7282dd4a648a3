"""At every cut a pattern's table has the matches that trying every way finds in its rows."""

from collections import Counter
from contextlib import closing
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any, Final

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc.derive.pattern.matcher import Skip
from cdc.derive.pattern.pattern_text import parse
from tests.unit.derive.definition.reading import definition
from tests.unit.derive.orders import one
from tests.unit.derive.pattern.by_hand import Case, Holds, Rows, Taken, matches
from tests.unit.derive.small_lake import SmallLake, rows_of

NOON: Final = datetime(2024, 1, 31, 12, tzinfo=UTC)
SCHEMA: Final = pa.schema(
    [
        ("id", pa.int64()),
        ("card", pa.string()),
        ("at", pa.timestamp("us", "UTC")),
        ("amount", pa.decimal128(10, 2)),
        ("country", pa.string()),
    ]
)
SKIPS: Final = {Skip.PAST_LAST_ROW: "PAST LAST ROW", Skip.TO_NEXT_ROW: "TO NEXT ROW"}
PATTERNS: Final = ("t l{2,} s??", "t l+? s?", "(t | s) l* t", "t (l s | s l)+")
FRAUD: Final = """\
/* ---
kind: pattern
within: 3 minutes
--- */
SELECT * FROM shop.payments MATCH_RECOGNIZE (
  PARTITION BY card ORDER BY at
  MEASURES first(id) AS first, last(id) AS last, count(*) AS n, sum(l.amount) AS total
  AFTER MATCH SKIP {skip} PATTERN ({pattern})
  DEFINE t AS amount < 1, l AS amount > 5 AND country IS DISTINCT FROM t.country,
    s AS sum(amount) < 20 AND amount >= prev(amount))
"""


def drawn(seed: int) -> list[tuple[Any, ...]]:
    """Return payments of few cards, most of which begin or go on with a match."""
    random = Random(seed)
    return [
        (
            number,
            random.choice(["1", "1", "1", "2", None]),
            random.choice([None, *[NOON + timedelta(minutes=i) for i in range(7)]]),
            random.choice([None, *[Decimal(each) for each in ("0.50", "0.50", "6", "6", "9.99")]]),
            random.choice(["DE", "BR", "BR", None]),
        )
        for number in range(random.randrange(18))
    ]


def amount(rows: Rows, at: int) -> Decimal | None:
    found: Decimal | None = rows[at][3]
    return found


def is_test(rows: Rows, taken: Taken) -> bool:
    value = amount(rows, taken[-1][1])
    return value is not None and value < 1


def is_large(rows: Rows, taken: Taken) -> bool:
    at = taken[-1][1]
    value = amount(rows, at)
    tests = [rows[i][4] for name, i in taken if name == "t"]
    return value is not None and value > 5 and rows[at][4] != (tests[-1] if tests else None)


def is_steady(rows: Rows, taken: Taken) -> bool:
    at = taken[-1][1]
    known = [value for _, i in taken if (value := amount(rows, i)) is not None]
    before, value = amount(rows, at - 1) if at else None, amount(rows, at)
    return before is not None and value is not None and sum(known) < 20 and value >= before


HOLDS: Final[dict[str, Holds]] = {"t": is_test, "l": is_large, "s": is_steady}


def by_hand(rows: list[tuple[Any, ...]], text: str, skip: Skip) -> "Counter[tuple[Any, ...]]":
    found: Counter[tuple[Any, ...]] = Counter()
    for card in {row[1] for row in rows}:
        own = sorted((row for row in rows if row[1] == card and row[2] is not None), key=by_time)
        minutes = [(row[2] - NOON) // timedelta(minutes=1) for row in own]
        case = Case(
            pattern=parse(text),
            rows=own,
            times=minutes,
            holds=HOLDS,
            within=3,
            skip=skip,
            target="",
        )
        of_card = matches(case)
        assert isinstance(of_card, list)
        for begin, names in of_card:
            taken = own[begin : begin + len(names)]
            large = [row[3] for row, name in zip(taken, names, strict=True) if name == "l"]
            total = sum(large) if large else None
            found[card, taken[0][0], taken[-1][0], len(taken), total] += 1
    return found


def by_time(row: tuple[Any, ...]) -> tuple[datetime, int]:
    return row[2], row[0]


@settings(max_examples=12, deadline=None)
@given(
    seeds=st.lists(st.integers(0, 2**32), min_size=2, max_size=4),
    text=st.sampled_from(PATTERNS),
    skip=st.sampled_from(list(SKIPS)),
)
def test_at_every_cut_it_has_the_matches_that_are_found_by_hand(
    tmp_path_factory: pytest.TempPathFactory, seeds: list[int], text: str, skip: Skip
) -> None:
    lake = SmallLake(tmp_path_factory.mktemp("lake"), {"payments": SCHEMA})
    fraud = definition(FRAUD.format(skip=SKIPS[skip], pattern=text), "marts.fraud.sql")
    with closing(lake.keep(fraud)) as kept:
        for rows in map(drawn, seeds):
            lake.set(payments=[dict(zip(SCHEMA.names, row, strict=True)) for row in rows])
            entry = one(kept, lake)

            assert Counter(rows_of(entry)) == by_hand(rows, text, skip)
