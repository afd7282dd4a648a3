"""Test the steps for a changed key, a renamed or dropped table, and each policy."""

from typing import Any

import pytest

from cdc.events.schema import Column
from cdc.events.structure.derive_steps import derive_course, derive_steps, policed
from cdc.events.structure.steps import (
    AddColumn,
    ChangeKey,
    ChangeMode,
    DropColumn,
    DropTable,
    Note,
    RenameColumn,
    RenameTable,
    Step,
    Stop,
)
from cdc.tables import TableId, TableMode
from tests.events.steps import ID, OLD, A, B, of, stop
from tests.events.structures import column, structure


def test_a_note_that_others_may_be_missing_before_stops() -> None:
    (found,) = derive_course(OLD, (Note(structure=OLD, unnoted=True),)).steps

    assert isinstance(found, Stop)
    assert "shop.orders's structure may not have been noted" in found.reason


def test_a_change_of_the_key() -> None:
    assert of(A, B, primary_key=["id", "a"]) == (ChangeKey(("id", "a")),)
    assert of(A, B, primary_key=[], identity="f") == (ChangeMode(TableMode.MULTISET),)
    assert of(A, B, primary_key=[], append=True) == (ChangeMode(TableMode.APPEND),)
    bag = structure(ID, A, B, primary_key=[], identity="f")
    assert derive_steps(bag, OLD) == (ChangeMode(TableMode.KEYED), ChangeKey(("id",)))
    assert "has neither a primary key" in stop(of(A, B, primary_key=[]))


def test_a_renamed_key_is_the_same_key() -> None:
    renamed = structure(column(1, "number", "int8"), A, B)

    assert derive_steps(OLD, renamed) == (RenameColumn("id", "number"),)


def test_a_key_that_does_not_arrive_stops() -> None:
    found = of(A, B, column(4, "p", "point"), primary_key=["id", "p"])

    assert "column p of the key of shop.orders" in stop(found)


@pytest.mark.parametrize(
    "columns",
    [(), (column(1, "v", "point"),), (column(1, "v", generated=True), column(2, "p", "point"))],
    ids=["none", "not kept", "generated"],
)
def test_a_table_of_which_no_column_arrives_any_more_stops(
    columns: tuple[dict[str, Any], ...],
) -> None:
    old = structure(column(1, "v", "text"), primary_key=[], identity="f")
    new = structure(*columns, primary_key=[], identity="f")

    assert "no column of shop.orders arrives" in stop(derive_steps(old, new))
    assert "no column of shop.orders arrives" in stop(
        derive_course(old, [Note(structure=new)], policy="ignore").steps
    )
    again = structure(column(3, "w", "text"), primary_key=[], identity="f")
    given = derive_course(old, [Note(structure=new), Note(structure=again)])
    assert given.steps == (DropColumn("v"), AddColumn(Column("w", "string"), None))


def test_a_key_that_was_dropped_and_added_again_between_two_events_was_never_missed() -> None:
    without = structure(ID, A, B, primary_key=[])
    other = structure(ID, A, B, primary_key=["id", "b"])

    assert "has neither" in stop(derive_course(OLD, [Note(structure=without)]).steps)
    found = derive_course(OLD, [Note(structure=without), Note(structure=other)])
    assert found.steps == (ChangeKey(("id", "b")),)
    assert found.structure == other


def test_tables_that_are_renamed_dropped_or_another_one() -> None:
    assert of(A, B, table="bills") == (RenameTable(TableId("shop", "bills")),)
    assert derive_steps(OLD, None) == (DropTable(),)
    assert derive_course(OLD, [Note(structure=None)]).structure is None
    assert "dropped and created again" in stop(of(A, B, oid=5))
    another = structure(ID, A, B, oid=5)
    found = derive_course(OLD, [Note(structure=None), Note(structure=another)])
    assert "dropped and created again" in stop(found.steps)


def test_the_remedy_of_a_lost_identity_is_that_of_its_cause() -> None:
    nothing = derive_course(OLD, [Note(structure=structure(ID, A, B, identity="n"))])
    no_key = derive_course(OLD, [Note(structure=structure(ID, A, B, primary_key=[]))])

    assert nothing.stops[0].remedy.startswith("ALTER TABLE shop.orders REPLICA IDENTITY DEFAULT")
    assert no_key.stops[0].remedy.startswith("give it a primary key, or ALTER TABLE shop.orders")


def test_ignored_are_columns_that_come_and_go() -> None:
    new = structure(ID, column(2, "z", "text"), column(4, "c", "float8", default=True))

    found = derive_course(OLD, [Note(structure=new, rewrite=2)], policy="ignore")

    assert found.steps == (RenameColumn("a", "z"),)
    assert found.structure is not None
    assert [c.name for c in found.structure.followed] == ["id", "z"]
    later = derive_course(found.structure, [Note(structure=new)], policy="evolve")
    assert later.steps == ()  # its earlier values are not in the lake


def test_a_name_of_a_column_that_is_kept_cannot_be_taken() -> None:
    new = structure(ID, column(2, "b", "text"))

    assert "takes the name" in stop(
        derive_course(OLD, [Note(structure=new)], policy="ignore").steps
    )


def test_ignored_columns_cannot_be_a_key() -> None:
    new = structure(ID, A, B, column(4, "c"), primary_key=["c"])

    assert "column c of the key" in stop(
        derive_course(OLD, [Note(structure=new)], policy="ignore").steps
    )


def test_policies() -> None:
    found: tuple[Step, ...] = (DropColumn("a"), AddColumn(Column("c", "int")), ChangeKey(("id",)))

    assert policed(found, "evolve") == found
    assert policed(found, "ignore") == (ChangeKey(("id",)),)
    assert "source.schema_changes" in stop(policed(found, "stop"))
    assert policed((), "stop") == ()
