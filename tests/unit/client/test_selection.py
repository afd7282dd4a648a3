"""A command selects the tables that its arguments name, or refuses with a reason."""

import pytest

from cdc.client.selection import ExistingTables, Selection, TableChoice, refuse_where, selected
from cdc.errors import CdcError, ErrorKind
from cdc.tables import TableId, TableMode

ORDERS, ITEMS, USERS, NEW, LOG, GONE = (
    TableId.parse(name)
    for name in ("shop.orders", "shop.items", "app.users", "shop.new", "app.log", "shop.gone")
)
STATES = {
    "shop.orders": "streaming",
    "shop.items": "stopped",
    "app.users": "degraded",
    "shop.gone": "stopped",
}
TABLES = ExistingTables(
    states=STATES,
    captured={ORDERS, ITEMS, USERS, NEW},
    source=[ORDERS, ITEMS, USERS, NEW, LOG],
)


@pytest.mark.parametrize(
    ("choice", "found"),
    [
        (TableChoice(names=("shop.orders",)), [ORDERS]),
        (TableChoice(names=("shop.items", "shop.orders")), [ITEMS, ORDERS]),
        (TableChoice(names=("shop.*", "shop.orders")), [ITEMS, ORDERS]),
        (TableChoice(names=("*.user?",)), [USERS]),
        (TableChoice(every=True), [USERS, ITEMS, ORDERS]),
        (TableChoice(stopped=True), [ITEMS]),
    ],
)
def test_a_table_named_twice_is_selected_once(choice: TableChoice, found: list[TableId]) -> None:
    assert selected(choice, TABLES) == Selection(tables=tuple(found))


def test_without_the_source_the_ledger_has_the_tables() -> None:
    found = selected(TableChoice(names=("shop.gone",)), ExistingTables(states=STATES))

    assert found.tables == (GONE,)


@pytest.mark.parametrize(
    ("name", "message", "remedy"),
    [
        ("shop.order", "there is no table shop.order", "did you mean shop.orders?"),
        ("SHOP.ORDERS", "there is no table SHOP.ORDERS", "wal2lake status"),
        ("orders", "'orders' is not a table name", "schema.table"),
        ("ship.*", "ship.* matches no table of the lake", "wal2lake status"),
        (
            "app.log",
            "app.log is a table of the source, but is not captured",
            "wal2lake apply-config",
        ),
        ("shop.new", "shop.new is captured, but is not in the lake yet", "first snapshot"),
        ("shop.gone", "shop.gone is in the lake, but is no longer captured", "source.tables"),
    ],
)
def test_a_name_without_a_table_is_refused(name: str, message: str, remedy: str) -> None:
    with pytest.raises(CdcError) as caught:
        selected(TableChoice(names=("shop.orders", name)), TABLES)

    assert (caught.value.kind, caught.value.message) == (ErrorKind.CONFIG, message)
    assert remedy in caught.value.remedy


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        (TableChoice(), "no table is named"),
        (TableChoice(every=True, stopped=True), "exclude each other"),
        (TableChoice(names=("shop.orders",), every=True), "exclude each other"),
    ],
)
def test_only_one_way_to_select_tables_is_accepted(choice: TableChoice, message: str) -> None:
    with pytest.raises(CdcError, match=message):
        selected(choice, TABLES)


def test_an_empty_lake_is_refused() -> None:
    with pytest.raises(CdcError, match="no table is in the lake yet"):
        selected(TableChoice(every=True), ExistingTables(states={}))


def test_an_empty_selection_is_reported() -> None:
    well = ExistingTables(states={"shop.orders": "streaming"})

    assert selected(TableChoice(stopped=True), well) == Selection(
        tables=(), nothing="no table is stopped"
    )


@pytest.mark.parametrize(
    ("tables", "mode", "shadow", "message"),
    [
        ((ORDERS, USERS), TableMode.KEYED, False, "for one table only, but 2 are selected"),
        ((), TableMode.KEYED, False, "for one table only, but 0 are selected"),
        ((ORDERS,), TableMode.KEYED, True, "--shadow replaces the whole table"),
        ((ITEMS,), TableMode.KEYED, False, "shop.items is stopped"),
        ((ORDERS,), TableMode.APPEND, False, "shop.orders is append-only"),
    ],
)
def test_where_needs_exactly_one_table_that_follows(
    tables: tuple[TableId, ...], mode: TableMode, *, shadow: bool, message: str
) -> None:
    modes = dict.fromkeys(tables, mode)

    with pytest.raises(CdcError, match=message) as caught:
        refuse_where(Selection(tables=tables), STATES, modes, shadow=shadow)

    assert caught.value.remedy


@pytest.mark.parametrize("mode", [TableMode.KEYED, TableMode.MULTISET])
def test_where_is_accepted_for_one_table(mode: TableMode) -> None:
    refuse_where(Selection(tables=(ORDERS,)), STATES, {ORDERS: mode}, shadow=False)
