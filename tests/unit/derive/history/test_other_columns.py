"""A history keeps the columns of its first step: more of them are left out, and others stop it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from cdc.derive.history.history import History
from cdc.errors import CdcError, ErrorKind
from cdc.events.schema import Column, TableSchema
from tests.events.source import act
from tests.unit.derive.history.kept import KeptHistory, history
from tests.unit.derive.log.logged import TOASTY, LoggedSource

BEFORE = replace(TOASTY, columns=TOASTY.columns[:-1])
"""The table before it got its last column, which the events have from then on."""
ADDED = TOASTY.columns[-1].name
NUMBERS = {name: number for number, name in enumerate(TOASTY.names, 1)}
Change = Callable[[TableSchema, dict[str, int]], tuple[TableSchema, dict[str, int]]]


def changed(source: LoggedSource, seed: int) -> int:
    """Commit a transaction with some changes; return its LSN."""
    random, before = Random(seed), len(source.happened)
    while len(source.happened) < before + 4:
        act(source, random, range(4))
    lsn = source.lsn
    source.commit()
    return lsn


@pytest.mark.parametrize("cuts", [1, 7, 40])
def test_an_added_column_that_is_not_tracked_is_left_out(tmp_path: Path, cuts: int) -> None:
    """At every cut it has the other columns of the table, and a rebuild makes the same rows."""
    kept = KeptHistory(tmp_path, history("n"), schema=BEFORE, numbers=dict(NUMBERS))
    del kept.numbers[ADDED]
    tracked = [BEFORE.names.index(name) for name in ("id", "n")]
    seen = {}
    for number in range(40):
        lsn = changed(kept.source, number)
        if number == 20:
            kept.bring()
            kept.schema, kept.numbers = TOASTY, NUMBERS
            kept.wanted = frozenset(TOASTY.names)
        seen[lsn] = {
            key: tuple(row[BEFORE.names[n]] for n in tracked)
            for key, row in kept.source.rows.items()
        }
        if number * cuts // 40 != (number + 1) * cuts // 40:
            kept.bring()
            whole = {
                key: tuple(row[name] for name in BEFORE.names)
                for key, row in kept.source.rows.items()
            }
            assert versions(kept, lsn) == whole
    rows = kept.rows()
    kept.bring(anew=True)

    assert kept.rows() == rows
    for lsn, expected in seen.items():
        found = versions(kept, lsn)
        assert {key: tuple(row[n] for n in tracked) for key, row in found.items()} == expected


def versions(kept: KeptHistory, lsn: int) -> dict[int, tuple[object, ...]]:
    """Return the rows at an LSN, of a history without the added column."""
    return replace(kept, schema=BEFORE).at_lsn(lsn)


def without(name: str) -> Change:
    return lambda schema, numbers: (
        replace(schema, columns=tuple(c for c in schema.columns if c.name != name)),
        {each: number for each, number in numbers.items() if each != name},
    )


def made_again(name: str) -> Change:
    """Return the change that drops a column, and adds one of the same name and type."""
    return lambda schema, numbers: (schema, {**numbers, name: 99})


def retyped(name: str, kind: str) -> Change:
    return lambda schema, numbers: (
        replace(
            schema,
            columns=tuple(replace(c, type=kind) if c.name == name else c for c in schema.columns),
        ),
        numbers,
    )


def swapped(schema: TableSchema, numbers: dict[str, int]) -> tuple[TableSchema, dict[str, int]]:
    """Let two columns of one type change their names."""
    return schema, {**numbers, "big": numbers["bigj"], "bigj": numbers["big"]}


def kept_in_the_lake(
    schema: TableSchema, numbers: dict[str, int]
) -> tuple[TableSchema, dict[str, int]]:
    """Drop a column that only the source loses."""
    return schema, without("n")(schema, numbers)[1]


def with_another_key(
    schema: TableSchema, numbers: dict[str, int]
) -> tuple[TableSchema, dict[str, int]]:
    return replace(schema, key=("id", "n")), numbers


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (without("n"), "has no column n any more"),
        (without("big"), "has no column big any more"),
        (kept_in_the_lake, "has no column n any more"),
        (made_again("n"), "has another column n than its history"),
        (made_again("bigh"), "has another column bigh than its history"),
        (swapped, "has another column big than its history"),
        (retyped("n", "string"), "has n as VARCHAR, and its history as INTEGER"),
        (retyped("n", "smallint"), "has n as SMALLINT, and its history as INTEGER"),
        (with_another_key, r"has another key than its history: \(id, n\) and \(id\)"),
    ],
)
@pytest.mark.parametrize("anew", [False, True])
def test_a_column_of_its_own_that_is_another_stops_it(
    tmp_path: Path, change: Change, said: str, *, anew: bool
) -> None:
    kept = KeptHistory(tmp_path, history("n"), numbers=NUMBERS)
    changed(kept.source, 1)
    kept.bring()
    before = kept.rows()
    changed(kept.source, 2)
    kept.schema, kept.numbers = change(kept.schema, kept.numbers)

    with pytest.raises(CdcError, match=f"public\\.toasty {said}.*another name") as stopped:
        kept.bring(anew=anew)

    assert stopped.value.kind is ErrorKind.TABLE_STOPPED
    assert kept.rows() == before


def test_wider_integers_need_a_rebuild(tmp_path: Path) -> None:
    """Hazard 42: those of its events fit into the new column."""
    kept = KeptHistory(tmp_path, history("n"))
    changed(kept.source, 1)
    kept.bring()
    kept.schema, _ = retyped("n", "bigint")(kept.schema, {})
    lsn = changed(kept.source, 2)
    with pytest.raises(CdcError, match=r"n as BIGINT.*wal2lake derived rebuild marts\.past"):
        kept.bring()

    kept.bring(anew=True)

    assert kept.at_lsn(lsn) == {key: tuple(row.values()) for key, row in kept.source.rows.items()}


def test_one_of_all_columns_stops_where_there_are_more(tmp_path: Path) -> None:
    kept = KeptHistory(tmp_path, history(), schema=BEFORE)
    assert kept.definition.history == History(track=())
    changed(kept.source, 1)
    kept.bring()
    kept.schema = TOASTY
    changed(kept.source, 2)

    with pytest.raises(CdcError, match=f"has a column {ADDED}, which its history has not"):
        kept.bring()


def test_the_order_of_columns_plays_no_part(tmp_path: Path) -> None:
    kept = KeptHistory(tmp_path, history("n"), schema=BEFORE)
    changed(kept.source, 1)
    kept.bring()
    first = Column("first", "int", nullable=True)
    kept.schema = replace(BEFORE, columns=(first, *reversed(BEFORE.columns)))
    lsn = changed(kept.source, 2)

    kept.bring()

    assert versions(kept, lsn) == {
        key: tuple(row[name] for name in BEFORE.names) for key, row in kept.source.rows.items()
    }


def test_a_history_of_an_earlier_release_goes_on(tmp_path: Path) -> None:
    """Its mark says nothing of numbers and keys."""
    kept = KeptHistory(tmp_path, history("n"))
    changed(kept.source, 1)
    kept.bring()
    kept.numbers = NUMBERS
    lsn = changed(kept.source, 2)

    kept.bring()

    assert kept.at_lsn(lsn).keys() == kept.source.rows.keys()
