"""The demo shows what moved in its derived tables, and fails where they are not right."""

import re
from collections import Counter
from datetime import UTC, datetime
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from cdc.demo import marts
from cdc.demo.marts import Mart
from cdc.errors import CdcError
from cdc.lake.records.derived_entry import DerivedEntry
from cdc.lake.records.ledger import LedgerRow

FOLDERS = ("derived", "plain")


def mart(*rows: tuple[Any, ...]) -> Mart:
    return Mart(("day", "orders"), Counter(rows))


def cut(number: int, *, at: int) -> LedgerRow:
    entry = DerivedEntry(table="marts.a", path="", version=1, state="", at_cut=at)
    now = datetime.now(UTC)
    return LedgerRow(
        cut=number,
        epoch=1,
        lsn=number,
        committed_at=None,
        published_at=now,
        transactions=1,
        tables=(),
        derived=(entry,),
    )


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (mart(("x", 1)), "1 rows are missing, 0 too many"),
        (mart(("x", 1), ("y", 2), ("y", 2)), "0 rows are missing, 1 too many"),
        (mart(("x", 1), ("y", 3)), "1 rows are missing, 1 too many"),
    ],
)
def test_a_table_that_differs_from_postgres_ends_the_demo(found: Mart, said: str) -> None:
    wanted = mart(("x", 1), ("y", 2))

    with pytest.raises(CdcError, match=f"marts.a is not what Postgres calculates: {said}") as error:
        marts._equal("marts.a", found, wanted)

    assert error.value.policy.exit_code == 1
    assert marts._equal("marts.a", wanted, wanted) is wanted


def test_only_rows_that_moved_are_shown() -> None:
    said = StringIO()
    stays, went, came = ("stays", 1), ("went", 2), ("came", None)
    before = dict.fromkeys(marts.CHANGED, mart(stays)) | {"marts.fraud": mart(stays, went)}
    after = dict.fromkeys(marts.CHANGED, mart(stays)) | {"marts.visits": mart(stays, came)}
    after["marts.fraud"] = mart(stays)

    marts.print_moves(Console(file=said, width=100), before, after)

    shown = [line.split() for line in said.getvalue().splitlines() if line]
    assert shown[2:4] == [["before", "no", "row"], ["after", "no", "row"]]
    assert shown[6:8] == [["before", "no", "row"], ["after", "came"]]
    assert shown[10:] == [["before", "went", "2"], ["after", "no", "row"]]


def test_every_derived_table_of_the_demo_has_its_query_for_postgres() -> None:
    for folder in FOLDERS:
        assert {file.stem for file in (marts.HERE / folder).iterdir()} == set(marts.CHANGED)


@pytest.mark.parametrize(
    ("cuts", "line"),
    [
        ([cut(7, at=7), cut(8, at=8)], "0 cuts .* at cut 8; .* 0 in 2 of 2 cuts, at most 0$"),
        ([cut(7, at=7), cut(8, at=6), cut(9, at=7)], "2 cuts .* at cut 9; .* 0 in 1 of 3 .* 2$"),
        ([cut(7, at=0), cut(8, at=8)], "0 cuts .* at cut 8; .* 0 in 1 of 2 cuts, at most 1$"),
    ],
)
def test_the_lag_is_counted_in_cuts(cuts: list[LedgerRow], line: str) -> None:
    assert re.match(line, marts.lag_line(cuts))
