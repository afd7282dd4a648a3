"""Without notes, the catalogue shows what changed, and a table stops if it is uncertain."""

from typing import Any

import pytest

from cdc.events.schema import Column
from cdc.events.structure.guess import guess, guess_course
from cdc.events.structure.steps import AddColumn, DropColumn, RenameColumn, Step, Stop, WidenColumn
from cdc.events.structure.structure import Structure
from tests.events.structures import column, numeric, structure

ID = column(1, "id", "int8")
A, B = column(2, "a", "text"), column(3, "b", **numeric(8, 2))
OLD = structure(ID, A, B)


def written_by(now: Structure) -> list[Column]:
    return [c.column for c in now.followed]


def guessed(*columns: dict[str, Any], **more: Any) -> tuple[Step, ...]:  # noqa: ANN401
    """Guess the steps to a catalogue that agrees with what the connector writes."""
    now = structure(ID, *columns, **more)
    return guess(OLD, written_by(now), now)


def doubt(steps: tuple[Step, ...]) -> str:
    """Return the reason of the only step, which must be a stop."""
    (only,) = steps
    assert isinstance(only, Stop)
    assert "connectors/structure.sql" in only.remedy
    return only.reason


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ((A, B), ()),
        ((A,), (DropColumn("b"),)),
        ((A, column(3, "c", **numeric(8, 2))), (RenameColumn("b", "c"),)),
        ((A, column(3, "b", **numeric(9, 2))), (WidenColumn("b", "decimal(9,2)"),)),
        ((A, B, column(4, "c")), (AddColumn(Column("c", "int")),)),
        ((A, B, column(4, "c", missing="5")), (AddColumn(Column("c", "int"), "5"),)),
        ((A, B, column(4, "c", default=True)), (AddColumn(Column("c", "int")),)),
        ((A, column(4, "b", "int8")), (DropColumn("b"), AddColumn(Column("b", "bigint")))),
        ((A, B, column(4, "p", "point")), ()),
        (
            (column(2, "b", "text"), column(3, "a", **numeric(8, 2))),
            (
                RenameColumn("a", "_cdc_aside_2"),
                RenameColumn("b", "a"),
                RenameColumn("_cdc_aside_2", "b"),
            ),
        ),
    ],
)
def test_column_numbers_show_what_changed(
    columns: tuple[dict[str, Any], ...], expected: tuple[Step, ...]
) -> None:
    assert guessed(*columns) == expected


def test_the_value_of_a_new_column_in_older_rows_is_certain_even_after_a_rewrite() -> None:
    """A rewrite erases that value in the catalogue, so none came after the column was added."""
    added = column(4, "c", missing="5", default=True)

    assert guessed(A, B, added, filenode=7) == (AddColumn(Column("c", "int"), "5"),)


@pytest.mark.parametrize(
    ("columns", "more", "reason"),
    [
        ((A, B, column(4, "c", default=True)), {"filenode": 7}, "values in the new column c"),
        ((A, B, column(4, "c")), {"filenode": 7}, "values in the new column c"),
        ((A, column(3, "b", "numeric")), {"filenode": 7}, "altered values in column b"),
        ((A, column(4, "b", **numeric(8, 2))), {}, "two columns named b"),
        ((column(2, "b", "text"), column(3, "a", "text")), {}, "two columns named a"),
        ((A, B, column(9, "c")), {}, "added and dropped again"),
        ((A, B), {"primary_key": ["a"]}, "has a different key now"),
        ((A, B), {"identity": "n"}, "has a different key now"),
        ((A, B), {"oid": 5}, "was dropped"),
    ],
)
def test_an_uncertain_change_stops(
    columns: tuple[dict[str, Any], ...], more: dict[str, Any], reason: str
) -> None:
    assert reason in doubt(guessed(*columns, **more))


def test_later_changes_in_the_catalogue_are_left_out_or_stop() -> None:
    now = structure(ID, A, B, column(4, "c"), column(5, "d"))
    writes = written_by(structure(ID, A, B, column(4, "c")))

    course = guess_course(OLD, writes, now)

    assert course.steps == (AddColumn(Column("c", "int")),)
    assert course.structure == structure(ID, A, B, column(4, "c"))
    assert "no longer has a column b" in doubt(guess(OLD, writes, structure(ID, A)))
    other = structure(ID, A, B, column(4, "c", "text"))
    assert "of type int for a while" in doubt(guess(OLD, writes, other))
    assert "does not write" in doubt(guess(OLD, written_by(structure(ID, A)), OLD))
    assert "was dropped" in doubt(guess(OLD, writes, None))


def test_a_column_that_was_left_out_stays_left_out() -> None:
    new = structure(ID, A, B, column(4, "c"))
    course = guess_course(OLD, written_by(new), new, policy="ignore")

    assert course.steps == ()
    assert course.structure is not None
    assert [c.name for c in course.structure.followed] == ["id", "a", "b"]
    assert guess(course.structure, written_by(new), new) == ()
