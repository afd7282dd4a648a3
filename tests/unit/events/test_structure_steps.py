"""Tests of the steps for changes of a table's structure, one at a time and several at once."""

from typing import Any

import pytest

from cdc.events.schema import Column
from cdc.events.structure.follow import follow, policed, steps
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
    WidenColumn,
)
from cdc.tables import TableId, TableMode
from tests.events.structures import column, numeric, structure, varchar

ID = column(1, "id", "int8", not_null=True)
OLD = structure(ID, column(2, "a", "text"), column(3, "b"))


def enum(number: int, name: str, **labels: str) -> dict[str, Any]:
    """Describe an enum column; each label is given under its OID, as in ``_7="sad"``."""
    by_oid = {oid.removeprefix("_"): label for oid, label in labels.items()}
    return column(number, name, "mood") | {"kind": "e", "labels": by_oid}


def of(*columns: dict[str, Any], **more: Any) -> tuple[Step, ...]:  # noqa: ANN401
    """Return the steps from OLD to a table with these columns beside the key."""
    flags = {name: more.pop(name) for name in ("rewrite", "converted", "append") if name in more}
    return steps(OLD, structure(ID, *columns, **more), **flags)


def stop(found: tuple[Step, ...]) -> str:
    """Return the reason of the only step, which must be a stop with a remedy."""
    (only,) = found
    assert isinstance(only, Stop)
    assert only.remedy
    return only.reason


A, B = column(2, "a", "text"), column(3, "b")


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ((A, B), ()),
        ((A,), (DropColumn("b"),)),
        ((A, column(3, "c")), (RenameColumn("b", "c"),)),
        ((A, B, column(4, "c", "text")), (AddColumn(Column("c", "string"), None),)),
        (
            (A, B, column(4, "c", "text", missing="x", default=True)),
            (AddColumn(Column("c", "string"), "x"),),
        ),
        ((A, column(3, "b", "int8")), (WidenColumn("b", "bigint"),)),
        ((A, column(3, "c", "int8")), (RenameColumn("b", "c"), WidenColumn("c", "bigint"))),
        ((A, column(4, "b", "text")), (DropColumn("b"), AddColumn(Column("b", "string"), None))),
        ((A, column(3, "b", not_null=True)), ()),
        ((A, column(3, "b", default=True)), ()),
        ((A, column(3, "b", "int2")), ()),  # narrower: old and new values fit the lake's type
        ((A, column(3, "b", "point")), (DropColumn("b"),)),
        ((A, B, column(4, "p", "point")), ()),
    ],
    ids=lambda value: " ".join(type(v).__name__ for v in value) or "nothing",
)
def test_a_change_of_columns(
    columns: tuple[dict[str, Any], ...], expected: tuple[Step, ...]
) -> None:
    assert of(*columns) == expected


def test_two_columns_that_swap_their_names() -> None:
    found = of(column(2, "b", "text"), column(3, "a"))

    assert found == (
        RenameColumn("a", "_cdc_aside_2"),
        RenameColumn("b", "a"),
        RenameColumn("_cdc_aside_2", "b"),
    )


def test_a_name_that_becomes_another_only_in_case_is_taken_by_way_of_a_third() -> None:
    assert of(column(2, "A", "text"), B) == (
        RenameColumn("a", "_cdc_aside_2"),
        RenameColumn("_cdc_aside_2", "A"),
    )


def test_the_name_of_a_dropped_column_is_free() -> None:
    assert of(column(2, "b", "text")) == (DropColumn("b"), RenameColumn("a", "b"))


def test_a_default_that_was_made_for_each_row_stops() -> None:
    new = A, B, column(4, "c", "float8", default=True)

    assert "new column c" in stop(of(*new, rewrite=2))
    assert of(*new) == (AddColumn(Column("c", "double"), None),)  # set after the column was added
    assert of(A, B, column(4, "c", "float8"), rewrite=2) == (AddColumn(Column("c", "double")),)
    partitioned = structure(ID, A, B, kind="p")
    later = structure(ID, *new, kind="p")
    assert "new column c" in stop(steps(partitioned, later))


@pytest.mark.parametrize(
    ("kind", "value", "held"),
    [
        ({"kind": "timestamptz"}, "2024-02-29 12:00:00+00", True),
        ({"kind": "timestamptz"}, "infinity", False),
        ({"kind": "timestamp"}, "10000-01-01 00:00:00", False),
        ({"kind": "date"}, "0044-03-15 BC", False),
        (numeric(8, 2), "-1.50", True),
        (numeric(8, 2), "NaN", False),
        ({"kind": "numeric"}, "NaN", True),
        ({"kind": "float8"}, "Infinity", True),
        ({"kind": "hstore"}, '"a"=>"1"', False),  # the connector sends JSON
        ({"kind": "money"}, "$1.00", False),
    ],
)
def test_a_value_on_older_rows_that_the_lake_cannot_hold_stops(
    kind: dict[str, Any], value: str, held: bool
) -> None:
    found = of(A, B, column(4, "c", **kind, missing=value))

    if held:
        assert [each.value for each in found if isinstance(each, AddColumn)] == [value]
    else:
        assert "that the lake's column cannot hold" in stop(found)


def test_a_constant_default_beside_a_conversion_stops() -> None:
    """The rewrite stores the default in every row, and the catalogue forgets it was one value."""
    new = A, column(3, "b", "int8"), column(4, "c", default=True)

    assert "new column c" in stop(of(*new, rewrite=4))


def test_an_expression_may_have_changed_anything() -> None:
    assert "converted by an expression" in stop(of(A, B, rewrite=4, converted=True))
    assert of(A, B, rewrite=4) == ()
    assert of(A, B, rewrite=2, converted=True) == ()


@pytest.mark.parametrize(
    ("before", "after", "type_"),
    [
        (column(2, "x", "int2"), column(2, "x", "int4"), "int"),
        (column(2, "x", "int4"), column(2, "x", "int8"), "bigint"),
        (column(2, "x", "int4"), column(2, "x", **numeric(12, 2)), "decimal(12,2)"),
        (column(2, "x", "int4"), column(2, "x", "numeric"), "string"),
        (column(2, "x", "int8"), column(2, "x", "text"), "string"),
        (column(2, "x", "int4"), column(2, "x", "float8"), "double"),
        (column(2, "x", "float4"), column(2, "x", "float8"), "double"),
        (column(2, "x", "bool"), column(2, "x", "text"), "string"),
        (column(2, "x", "date"), column(2, "x", "timestamp"), "timestamp_ntz"),
        (column(2, "x", **numeric(10, 2)), column(2, "x", **numeric(12, 2)), "decimal(12,2)"),
        (column(2, "x", **numeric(10, 2)), column(2, "x", **numeric(12, 4)), "decimal(12,4)"),
        (column(2, "x", **numeric(10, 2)), column(2, "x", **numeric(8, 2)), None),
        (column(2, "x", **numeric(10, 2)), column(2, "x", "numeric"), "string"),
        (column(2, "x", **numeric(10, 2)), column(2, "x", "text"), "string"),
        (column(2, "x", **numeric(40, 2)), column(2, "x", **numeric(45, 2)), None),
        (column(2, "x", **varchar(5)), column(2, "x", **varchar(9)), None),
        (column(2, "x", **varchar(5)), column(2, "x", "text"), None),
        (column(2, "x", "text"), column(2, "x", "varchar"), None),
        (column(2, "x", "int4"), column(2, "x", **varchar(3)), "string"),
        (column(2, "x", "jsonb"), column(2, "x", "text"), None),
        (enum(2, "x"), column(2, "x", "text"), None),
        (column(2, "x", "int8"), column(2, "x", "int4"), None),
        (column(2, "x", "_int4"), column(2, "x", "_int8"), "array<bigint>"),
        (column(2, "x", "timestamp", modifier=3), column(2, "x", "timestamp"), None),
        (column(2, "x", "_int8"), column(2, "x", "_text"), "array<string>"),
        (column(2, "x", "int4"), column(2, "x", "int4") | {"kind": "d", "domain": "pos"}, None),
    ],
    ids=lambda value: value["type"] if isinstance(value, dict) else str(value),
)
def test_a_type_that_holds_every_value(
    before: dict[str, Any], after: dict[str, Any], type_: str | None
) -> None:
    found = steps(structure(ID, before), structure(ID, after), rewrite=4)

    assert found == (() if type_ is None else (WidenColumn("x", type_),))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (column(2, "x", "float8"), column(2, "x", "float4")),
        (column(2, "x", "int8"), column(2, "x", "float8")),
        (column(2, "x", "int4"), column(2, "x", **numeric(40, 2))),
        (column(2, "x", "int4"), column(2, "x", **numeric(4, -2))),
        (column(2, "x", **numeric(10, 2)), column(2, "x", **numeric(10, 1))),
        (column(2, "x", **numeric(10, 2)), column(2, "x", **numeric(40, 4))),
        (column(2, "x", **numeric(40, 2)), column(2, "x", **numeric(45, 4))),
        (column(2, "x", **numeric(40, 2)), column(2, "x", **numeric(30, 2))),
        (column(2, "x", "numeric"), column(2, "x", **numeric(10, 2))),
        (column(2, "x", **varchar(9)), column(2, "x", **varchar(5))),
        (column(2, "x", "text"), column(2, "x", **varchar(5))),
        (column(2, "x", "jsonb"), column(2, "x", **varchar(5))),
        (column(2, "x", "bpchar", modifier=9), column(2, "x", "bpchar", modifier=14)),
        (column(2, "x", "bpchar", modifier=9), column(2, "x", "text")),
        (column(2, "x", "timestamp"), column(2, "x", "timestamptz")),
        (column(2, "x", "timestamp"), column(2, "x", "timestamp", modifier=3)),
        (column(2, "x", "timestamp"), column(2, "x", "date")),
        (column(2, "x", "float8"), column(2, "x", "text")),
        (column(2, "x", "int4"), column(2, "x", "oid")),
        (column(2, "x", "cidr"), column(2, "x", "inet")),
        (column(2, "x", "text"), column(2, "x", "int4")),
        (column(2, "x", "int4"), column(2, "x", "_int4")),
    ],
    ids=lambda value: value["type"],
)
def test_a_type_under_which_a_value_may_be_another_stops(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    found = steps(structure(ID, before), structure(ID, after), rewrite=4)

    assert "column x of shop.orders changed its type" in stop(found)


def test_a_renamed_value_of_an_enum_stops_and_an_added_one_does_not() -> None:
    old = structure(ID, enum(2, "m", _7="sad"))

    assert "enum of column m" in stop(steps(old, structure(ID, enum(2, "m", _7="blue"))))
    assert steps(old, structure(ID, enum(2, "m", _7="sad", _8="ok"))) == ()
    renamed = enum(2, "m", _7="sad") | {"type": "feeling"}
    assert steps(old, structure(ID, renamed)) == ()
    # The user's own cast may turn one value into any other.
    another = enum(2, "m", _9="sad") | {"type": "feeling"}
    assert "changed its type from mood to feeling" in stop(steps(old, structure(ID, another)))


def test_a_composite_type_with_other_attributes_stops() -> None:
    pair = column(2, "p", "pair") | {"kind": "c"}
    old, new = pair | {"parts": "7:1:23:-1"}, pair | {"parts": "7:1:23:-1 7:2:23:-1"}

    assert "attributes of the type of column p of shop.orders changed" in stop(
        steps(structure(ID, old), structure(ID, new))
    )
    assert steps(structure(ID, old), structure(ID, old)) == ()


def test_a_new_column_that_may_crash_the_connector_stops() -> None:
    """The trigger unpublishes it, but the connector excludes only what it saw at its start."""
    array = column(4, "q", "_xid8")

    found = steps(OLD, structure(ID, A, B, array))
    assert "new column q of shop.orders may crash the connector" in stop(found)
    assert steps(structure(ID, array), structure(ID, array)) == ()
    assert of(A, B, column(4, "q", "_inet")) == ()
    assert of(A, B, column(4, "q", "_xid8", generated=True)) == ()


def test_a_column_that_begins_to_arrive_stops() -> None:
    old = structure(ID, column(2, "x", generated=True))

    assert "column x of shop.orders did not arrive" in stop(
        steps(old, structure(ID, column(2, "x")))
    )


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ((A, column(4, "A", "text")), "shop.orders: columns a and A have one name"),
        ((column(2, "a-b"), column(4, "a b")), "columns a-b and a b have one name"),
        ((A, column(4, "_CDC_offset")), "names that begin with _cdc_ are reserved"),
        ((A, column(4, "_metadata")), "column _metadata: Spark and Delta have a column"),
        ((column(2, "_9"), column(4, "9")), "columns _9 and 9 have one name"),
        ((column(2, "__"), column(4, "😀")), "columns __ and 😀 have one name"),
    ],
)
def test_a_name_that_the_lake_cannot_have_stops(
    columns: tuple[dict[str, Any], ...], reason: str
) -> None:
    found = steps(structure(ID, column(2, "a", "text")), structure(ID, *columns))

    assert any(isinstance(each, Stop) and reason in each.reason for each in found)
    assert all(isinstance(each, Stop) for each in found)


@pytest.mark.parametrize(
    "columns",
    [(A, column(4, "x", "bool", namesake="pg_catalog.bool")), ({**A, "namesake": "shop.int4"},)],
)
def test_a_column_whose_type_is_taken_for_another_stops(
    columns: tuple[dict[str, Any], ...],
) -> None:
    """The type is new with its column, or appears beside a column that was there before."""
    taken = columns[-1]
    (found,) = steps(structure(ID, A), structure(ID, *columns))

    assert isinstance(found, Stop)
    assert f"column {taken['name']}" in found.reason
    assert f"takes its type {taken['type']} for {taken['namesake']}" in found.reason
    assert "rename" in found.remedy


def test_a_note_that_others_may_be_missing_before_stops() -> None:
    (found,) = follow(OLD, (Note(structure=OLD, unnoted=True),)).steps

    assert isinstance(found, Stop)
    assert "shop.orders's structure may not have been noted" in found.reason


def test_a_column_that_does_not_arrive_may_have_a_type_of_any_name() -> None:
    hidden = column(4, "x", "bool", namesake="pg_catalog.bool", generated=True)
    assert steps(structure(ID, A), structure(ID, A, hidden)) == ()


@pytest.mark.timeout(20, method="thread")  # an endless course would use up all memory
@pytest.mark.parametrize("name", ["A", "ID", "b-1"])
def test_a_column_that_is_renamed_to_what_is_another_s_in_the_lake_stops(name: str) -> None:
    old = structure(ID, A, column(3, "b"), column(4, "b_1"))
    new = structure(ID, A, column(3, name), column(4, "b_1"))
    back = follow(old, [Note(structure=new), Note(structure=old)])

    assert "have one name" in stop(steps(old, new))
    assert "have one name" in stop(back.steps)


def test_a_change_of_the_key() -> None:
    assert of(A, B, primary_key=["id", "a"]) == (ChangeKey(("id", "a")),)
    assert of(A, B, primary_key=[], identity="f") == (ChangeMode(TableMode.MULTISET),)
    assert of(A, B, primary_key=[], append=True) == (ChangeMode(TableMode.APPEND),)
    bag = structure(ID, A, B, primary_key=[], identity="f")
    assert steps(bag, OLD) == (ChangeMode(TableMode.KEYED), ChangeKey(("id",)))
    assert "has neither a primary key" in stop(of(A, B, primary_key=[]))


def test_a_renamed_key_is_the_same_key() -> None:
    renamed = structure(column(1, "number", "int8"), A, B)

    assert steps(OLD, renamed) == (RenameColumn("id", "number"),)


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

    assert "no column of shop.orders arrives" in stop(steps(old, new))
    assert "no column of shop.orders arrives" in stop(
        follow(old, [Note(structure=new)], policy="ignore").steps
    )
    again = structure(column(3, "w", "text"), primary_key=[], identity="f")
    given = follow(old, [Note(structure=new), Note(structure=again)])
    assert given.steps == (DropColumn("v"), AddColumn(Column("w", "string"), None))


def test_a_key_that_was_dropped_and_added_again_between_two_events_was_never_missed() -> None:
    without = structure(ID, A, B, primary_key=[])
    other = structure(ID, A, B, primary_key=["id", "b"])

    assert "has neither" in stop(follow(OLD, [Note(structure=without)]).steps)
    found = follow(OLD, [Note(structure=without), Note(structure=other)])
    assert found.steps == (ChangeKey(("id", "b")),)
    assert found.structure == other


def test_tables_that_are_renamed_dropped_or_another_one() -> None:
    assert of(A, B, table="bills") == (RenameTable(TableId("shop", "bills")),)
    assert steps(OLD, None) == (DropTable(),)
    assert follow(OLD, [Note(structure=None)]).structure is None
    assert "dropped and created again" in stop(of(A, B, oid=5))
    another = structure(ID, A, B, oid=5)
    found = follow(OLD, [Note(structure=None), Note(structure=another)])
    assert "dropped and created again" in stop(found.steps)


def test_the_remedy_of_a_lost_identity_is_that_of_its_cause() -> None:
    nothing = follow(OLD, [Note(structure=structure(ID, A, B, identity="n"))])
    no_key = follow(OLD, [Note(structure=structure(ID, A, B, primary_key=[]))])

    assert nothing.stops[0].remedy.startswith("ALTER TABLE shop.orders REPLICA IDENTITY DEFAULT")
    assert no_key.stops[0].remedy.startswith("give it a primary key, or ALTER TABLE shop.orders")


def test_several_changes_in_one_statement() -> None:
    found = of(column(2, "name", "text"), column(4, "c", missing="5", default=True), rewrite=0)

    assert found == (
        DropColumn("b"),
        RenameColumn("a", "name"),
        AddColumn(Column("c", "int"), "5"),
    )


def test_a_narrower_type_leaves_the_lake_wider_and_the_next_change_knows() -> None:
    narrow = structure(ID, A, column(3, "b", "int2"))

    kept = follow(OLD, [Note(structure=narrow, rewrite=4)]).structure
    assert kept is not None
    assert kept.numbered()[3].lake == "int"
    assert steps(kept, OLD, rewrite=4) == ()
    text = structure(ID, A, column(3, "b", "text"))
    assert steps(kept, text, rewrite=4) == (WidenColumn("b", "string"),)


def test_ignored_are_columns_that_come_and_go() -> None:
    new = structure(ID, column(2, "z", "text"), column(4, "c", "float8", default=True))

    found = follow(OLD, [Note(structure=new, rewrite=2)], policy="ignore")

    assert found.steps == (RenameColumn("a", "z"),)
    assert found.structure is not None
    assert [c.name for c in found.structure.followed] == ["id", "z"]
    later = follow(found.structure, [Note(structure=new)], policy="evolve")
    assert later.steps == ()  # its earlier values are not in the lake


def test_a_name_of_a_column_that_is_kept_cannot_be_taken() -> None:
    new = structure(ID, column(2, "b", "text"))

    assert "takes the name" in stop(follow(OLD, [Note(structure=new)], policy="ignore").steps)


def test_ignored_columns_cannot_be_a_key() -> None:
    new = structure(ID, A, B, column(4, "c"), primary_key=["c"])

    assert "column c of the key" in stop(follow(OLD, [Note(structure=new)], policy="ignore").steps)


def test_policies() -> None:
    found: tuple[Step, ...] = (DropColumn("a"), AddColumn(Column("c", "int")), ChangeKey(("id",)))

    assert policed(found, "evolve") == found
    assert policed(found, "ignore") == (ChangeKey(("id",)),)
    assert "source.schema_changes" in stop(policed(found, "stop"))
    assert policed((), "stop") == ()
