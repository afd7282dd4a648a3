"""The source can calculate a table over derived tables, which it does not have."""

from cdc.derive.definition.inlined import inlined
from cdc.tables import TableId
from tests.unit.derive.small_lake import defined

LOW = defined("low", 'SELECT a FROM "shop"."t"', "shop.t")
MIDDLE = defined("middle", 'SELECT l.a FROM "marts"."low" AS l', "marts.low")
HIGH = defined(
    "high", 'SELECT low.a FROM "marts"."low" JOIN "marts"."middle" AS m ON m.a = low.a', "marts.low"
)
KNOWN = {one.table: one for one in (LOW, MIDDLE, HIGH)}


def test_a_query_over_captured_tables_stays_as_it_is() -> None:
    assert inlined(LOW, {LOW.table: LOW, TableId("shop", "u"): MIDDLE}) == LOW.postgres


def test_derived_inputs_become_subqueries_with_the_names_that_the_query_uses() -> None:
    low = '(SELECT a FROM "shop"."t")'

    assert inlined(MIDDLE, KNOWN) == f'SELECT l.a FROM {low} AS "l"'
    assert inlined(HIGH, KNOWN) == (
        f'SELECT low.a FROM {low} AS "low" JOIN (SELECT l.a FROM {low} AS "l") AS "m" '
        "ON m.a = low.a"
    )
