"""At every cut a fold's tables have what a count of its events by hand gives, in another way."""

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Final

from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc.lake.table.positions import KEY_PROPERTY
from cdc.tables import TableId
from tests.unit.derive.fold.bank import BALANCE, EVENTS, fold
from tests.unit.derive.small_lake import SmallLake, rows_of

KINDS: Final = ("opened", "deposited", "deposited", "deposited", "withdrew", "closed", "broken")
Row = tuple[Any, ...]


def drawn(random: Random) -> list[dict[str, Any]]:
    """Return events of few accounts, most of which are in order; some are missing or doubled."""
    rows = []
    for account in (1, 2, 3, None):
        versions = [v for v in range(1, random.randrange(2, 7)) if random.random() < 0.93]
        versions += [v for v in versions if random.random() < 0.05]
        for version in [*versions, *([random.choice([0, None])] if random.random() < 0.1 else [])]:
            kind = "opened" if version == 1 else random.choice(KINDS)
            amount = None if kind == "broken" else Decimal(random.randrange(400)) / 100
            rows.append({"account_id": account, "version": version, "kind": kind, "amount": amount})
    random.shuffle(rows)
    return [{"id": i, **row} for i, row in enumerate(rows)]


def by_hand(rows: list[dict[str, Any]]) -> "tuple[Counter[Row], Counter[Row]]":
    """Return the states and the faults, without their details.

    Here each account is looked at by its set of versions: it goes on as long as they are whole,
    and money is counted in cents of what was paid in and out.
    """
    states, faults = Counter[Row](), Counter[Row]()
    for account in {row["account_id"] for row in rows}:
        own = [row for row in rows if row["account_id"] == account]
        if account is None:
            faults[None, None, "no version"] += 1
            continue
        counts = Counter(row["version"] for row in own)
        faults.update((account, *fault) for fault in misnumbered(counts))
        end = 0 if counts[0] else whole(counts)
        taken = [min(by(own, v), key=lambda row: row["id"]) for v in range(1, end + 1)]
        last, wrong = played(taken)
        if wrong:
            faults[account, last + 1, wrong] += 1
        if last:
            cents = sum(map(cents_of, since_opened(taken[:last])))
            state = "closed" if taken[last - 1]["kind"] == "closed" else "open"
            states[account, last, Decimal(cents) / 100, state] += 1
    return states, faults


def misnumbered(counts: "Counter[int | None]") -> Iterator[tuple[int | None, str]]:
    """Yield the faults of an account's versions, given how many events have each."""
    numbers = [version for version in counts if version is not None]
    if None in counts:
        yield None, "no version"
    for version in numbers:
        if counts[version] > 1:
            yield version, "double"
        if version < 1:
            yield version, "before first"
        elif version > 1 and version - 1 not in counts:
            yield 1 + max((v for v in numbers if 0 < v < version), default=0), "gap"


def by(rows: list[dict[str, Any]], version: int) -> list[dict[str, Any]]:
    return [row for row in rows if row["version"] == version]


def whole(counts: "Counter[int | None]") -> int:
    """Return the last version that counts: what follows a gap or a double does not."""
    end = 0
    while counts[end + 1]:
        end += 1
        if counts[end] > 1:
            break
    return end


def played(rows: list[dict[str, Any]]) -> tuple[int, str]:
    """Return how many events can be, and what is wrong with the next; nothing if all can."""
    for n in range(1, len(rows) + 1):
        kinds = [row["kind"] for row in rows[:n]]
        if kinds[-1] == "opened":
            continue
        if kinds[-2] == "closed":
            return n - 1, "refused"
        if kinds[-1] == "broken":
            return n - 1, "error"
        if kinds[-1] != "closed" and sum(map(cents_of, since_opened(rows[:n]))) < 0:
            return n - 1, "refused"
    return len(rows), ""


def since_opened(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    begin = max(i for i, row in enumerate(rows) if row["kind"] == "opened")
    return rows[begin:]


def cents_of(row: dict[str, Any]) -> int:
    sign = {"deposited": 100, "withdrew": -100}.get(row["kind"], 0)
    return int((row["amount"] or 0) * sign)


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_every_cut_is_what_a_count_by_hand_gives(seed: int) -> None:
    random = Random(seed)
    with TemporaryDirectory() as folder:
        lake = SmallLake(Path(folder), {"account_events": EVENTS})
        lake.set(account_events=[])
        table = DeltaTable(lake.path(TableId("shop", "account_events")))
        table.alter.set_table_properties({KEY_PROPERTY: '["id"]'}, raise_if_not_exists=False)
        with closing(lake.keep(*fold(BALANCE))) as kept:
            for rows in (drawn(random), drawn(random), drawn(random)):
                lake.set(account_events=rows)
                states, faults = kept.entries(lake.row())

                expected = by_hand(rows)
                assert Counter(rows_of(states)) == expected[0], rows
                assert Counter(row[:3] for row in rows_of(faults)) == expected[1], rows


def test_the_drawn_events_have_every_fault() -> None:
    """Otherwise the comparison would show little."""
    random = Random(1)
    found = Counter[str]()
    for _ in range(200):
        _, faults = by_hand(drawn(random))
        found += Counter(fault[2] for fault in faults)

    wanted = {"gap", "double", "before first", "no version", "refused", "error"}
    assert set(found) == wanted
    assert min(found.values()) > 5
