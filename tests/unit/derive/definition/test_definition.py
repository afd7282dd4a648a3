"""What a definition declares is found in its query."""

import pytest

from cdc.tables import TableId
from tests.unit.derive.definition.reading import definition

ORDERS = TableId("shop", "orders")
CUSTOMERS = TableId("shop", "customers")


def test_a_file_names_its_table() -> None:
    read = definition("SELECT o.id FROM shop.orders AS o", "marts.daily_sales.sql")

    assert read.table == TableId("marts", "daily_sales")


def test_inputs_are_in_order_of_first_use_wherever_they_are() -> None:
    read = definition("""
        WITH c AS (SELECT id FROM shop.customers)
        SELECT c.id, (SELECT max(w.n) FROM "Odd".weights AS w) AS heaviest
        FROM c WHERE EXISTS (SELECT 1 FROM shop.orders AS o WHERE o.customer = c.id)
        UNION ALL SELECT d.id, 1 FROM Shop.Customers AS d
    """)

    assert read.inputs == (CUSTOMERS, TableId("Odd", "weights"), ORDERS)
    assert read.places == ((2, 35), (3, 44), (4, 44))


def test_a_name_of_a_with_is_no_input() -> None:
    read = definition("WITH orders AS (SELECT id FROM shop.orders) SELECT id FROM orders")

    assert read.inputs == (ORDERS,)


def test_columns_are_named_as_postgres_names_them() -> None:
    read = definition('SELECT o.Id, "Land", total AS SUM FROM shop.orders AS o')

    assert read.columns == ("id", "Land", "sum")


@pytest.mark.parametrize(
    ("query", "key"),
    [
        ("SELECT country, count(*) AS n FROM shop.orders GROUP BY country", ("country",)),
        ("SELECT count(*) AS n, o.country AS c FROM shop.orders AS o GROUP BY 2", ("c",)),
        ("SELECT count(*) AS n, o.a, o.b FROM shop.orders AS o GROUP BY o.b, o.a", ("b", "a")),
        ("SELECT count(*) AS n, o.a FROM shop.orders AS o GROUP BY o.b, o.a", ()),
        ("SELECT count(*) AS n FROM shop.orders", ()),
        ("SELECT o.a + 1 AS x, count(*) AS n FROM shop.orders AS o GROUP BY O.A + 1", ("x",)),
        ("SELECT a FROM shop.orders GROUP BY a UNION SELECT b FROM shop.orders", ()),
    ],
)
def test_the_key_is_what_group_by_makes_unique(query: str, key: tuple[str, ...]) -> None:
    assert definition(query).key == key


def test_the_hash_ignores_what_changes_no_row() -> None:
    one = definition("SELECT o.a, count(*) AS n FROM shop.orders AS o GROUP BY 1")
    other = definition(
        "/* ---\ndoc: x\nrefresh: full\nkey: [a]\n--- */\n-- why\n"
        "select O.a, COUNT(*) n\nfrom shop.orders o /* here */ group by o.A;"
    )

    assert one.hash == other.hash


@pytest.mark.parametrize(
    "text",
    [
        "SELECT o.a, count(*) AS m FROM shop.orders AS o GROUP BY 1",
        "SELECT o.a, count(o.a) AS n FROM shop.orders AS o GROUP BY 1",
        "SELECT o.a, count(*) AS n FROM shop.orders AS o WHERE o.a > 1 GROUP BY 1",
        "/* ---\nkey: [n]\n--- */ SELECT o.a, count(*) AS n FROM shop.orders AS o GROUP BY 1",
    ],
)
def test_the_hash_sees_what_changes_rows(text: str) -> None:
    assert definition("SELECT o.a, count(*) AS n FROM shop.orders AS o GROUP BY 1").hash != (
        definition(text).hash
    )


def test_a_query_is_printed_with_quoted_names_and_without_positions() -> None:
    read = definition(
        "SELECT date_trunc('day', o.at) AS d, -o.a * 2 + 1 AS x FROM shop.orders AS o "
        "GROUP BY 1, o.a"
    )

    assert read.postgres == (
        'SELECT DATE_TRUNC(\'day\', "o"."at") AS "d", ((-"o"."a") * 2) + 1 AS "x" '
        'FROM "shop"."orders" AS "o" GROUP BY DATE_TRUNC(\'day\', "o"."at"), "o"."a"'
    )


def test_a_function_that_depends_on_a_type_is_guarded_for_duckdb() -> None:
    read = definition("SELECT o.a::text AS t FROM shop.orders AS o")

    assert "TYPEOF" not in read.postgres
    assert 'CASE WHEN REGEXP_MATCHES(TYPEOF("o"."a"), \'^(' in read.duckdb
    assert "ELSE ERROR('text of a value of this type differs from Postgres" in read.duckdb
