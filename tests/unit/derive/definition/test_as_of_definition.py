"""A query for tables as they were reads their histories, or is refused at its place."""

from pathlib import Path

import pytest

from cdc.derive.definition.declared import Declared, declared
from cdc.derive.definition.definition import Definition
from cdc.derive.definition.inlined import beyond_sql
from cdc.derive.history.history import OWN
from cdc.derive.scope.of_definition import definition_scope
from cdc.derive.scope.scope import Scope
from cdc.derive.sql.problem import Problem
from cdc.tables import TableId

CAPTURED = [TableId("shop", name) for name in ("orders", "customers", "rates")]
PAST = "/* ---\nkind: history\ntable: shop.{}\n{}--- */\n"
FILES = {
    "marts.customers_past": PAST.format("customers", "track: [id, tier]\n"),
    "marts.orders_past": PAST.format("orders", "track: [status]\n"),
    "marts.sums": "SELECT o.customer_id, count(*) AS n FROM shop.orders AS o GROUP BY 1",
}
QUERY = (
    "SELECT o.id, c.tier FROM shop.orders AS o\n"
    "JOIN shop.customers FOR SYSTEM_TIME AS OF o.paid_at AS c ON c.id = o.customer_id"
)
BY_COMMIT = QUERY.replace("o.paid_at", "o._commit")


def read(folder: Path, text: str, **more: str) -> Declared:
    files = {**FILES, **{f"marts.{name}": each for name, each in more.items()}, "marts.q": text}
    for name, each in files.items():
        (folder / f"{name}.sql").write_text(each)
    return declared(folder, CAPTURED)


def definition(folder: Path, text: str, **more: str) -> Definition:
    found = read(folder, text, **more)
    assert found.problems == []
    return next(one for one in found.definitions if one.table.name == "q")


def problem(folder: Path, text: str, **more: str) -> Problem:
    (found,) = read(folder, text, **more).distinct_problems
    return found


def test_by_time_the_history_is_read(tmp_path: Path) -> None:
    found = definition(tmp_path, QUERY)

    assert found.inputs == (TableId("shop", "orders"), TableId("marts", "customers_past"))
    assert found.places == ((1, 26), (2, 6))
    known = {one.table: one for one in declared(tmp_path, CAPTURED).definitions}
    assert beyond_sql(found, known) is known[TableId("marts", "customers_past")]


def test_by_commit_the_rows_are_those_of_their_history(tmp_path: Path) -> None:
    found = definition(tmp_path, BY_COMMIT)

    assert found.inputs == (TableId("marts", "orders_past"), TableId("marts", "customers_past"))
    assert '"o"._to_lsn IS NULL' in found.duckdb


def test_a_table_that_is_read_besides_stays_an_input(tmp_path: Path) -> None:
    more = " JOIN shop.customers AS now ON now.id = c.id"

    found = definition(tmp_path, QUERY + more)

    assert [one.name for one in found.inputs] == ["orders", "customers_past", "customers"]


def test_what_it_asks_for_is_part_of_its_hash_and_so_is_the_history(tmp_path: Path) -> None:
    first = definition(tmp_path, QUERY)
    other = definition(tmp_path, QUERY.replace("paid_at", "sent_at"))
    (tmp_path / "marts.customers_past.sql").unlink()
    renamed = FILES["marts.customers_past"]
    (tmp_path / "marts.customers_then.sql").write_text(renamed)
    (tmp_path / "marts.q.sql").write_text(QUERY)
    moved = declared(tmp_path, CAPTURED).definitions[-1]

    assert len({first.hash, other.hash, moved.hash}) == 3


@pytest.mark.parametrize("text", [QUERY, BY_COMMIT])
def test_a_step_calculates_what_changed_rows_lead_to(tmp_path: Path, text: str) -> None:
    own = (*OWN, "id", "customer_id", "paid_at", "tier")

    scope = definition_scope(
        definition(tmp_path, text), dict.fromkeys(definition(tmp_path, text).inputs, own)
    )

    assert isinstance(scope, Scope)
    assert scope.columns == ("id", "tier")
    (link,) = scope.branches[0].links
    assert link.columns == (("id", "customer_id"),)


def test_a_history_can_be_named(tmp_path: Path) -> None:
    """Where a table has several that have the columns; also as the rows themselves."""
    named = QUERY.replace("shop.customers", "marts.customers_past")
    versions = BY_COMMIT.replace("shop.orders", "marts.orders_past")

    assert definition(tmp_path, named).inputs == definition(tmp_path, QUERY).inputs
    assert definition(tmp_path, versions).inputs == definition(tmp_path, BY_COMMIT).inputs
    assert " WHERE " not in definition(tmp_path, versions).duckdb


def test_the_history_that_has_the_columns_is_taken(tmp_path: Path) -> None:
    other = PAST.format("customers", "track: [country]\n")

    assert definition(tmp_path, QUERY, other=other).inputs[1].name == "customers_past"


def test_a_whole_table_as_it_was(tmp_path: Path) -> None:
    """A constant is a time in UTC, however its zone is written."""
    text = "SELECT c.id, c.tier FROM shop.customers FOR SYSTEM_TIME AS OF {} c WHERE c.id > 0"

    found = definition(tmp_path, text.format("TIMESTAMPTZ '2024-01-31 12:30:00+05:30'"))
    plain = definition(tmp_path, text.format("TIMESTAMP '2024-01-31 07:00:00'"))

    assert found.duckdb == plain.duckdb
    assert "CAST('2024-01-31 07:00:00' AS TIMESTAMPTZ)" in found.duckdb


def test_windows_and_late_rows_beside_it(tmp_path: Path) -> None:
    """The windows are of the rows of now; late rows by the table's own log."""
    late = "/* ---\nlate: {column: at, allowed: 1 hour}\n--- */\n"
    text = (
        "SELECT w.window_end, c.tier, count(*) AS n FROM tumble(shop.orders, at, INTERVAL '1 hour')"
        " AS w JOIN shop.customers FOR SYSTEM_TIME AS OF w._commit AS c ON c.id = w.customer_id "
        "GROUP BY w.window_end, c.tier"
    )

    found = definition(tmp_path, late + text)

    assert [one.name for one in found.inputs] == ["orders_past", "customers_past", "q__late"]
    aside = problem(tmp_path, late.replace("1 hour}", "1 hour, policy: aside}") + text)
    assert (aside.line, aside.message, aside.remedy) == (
        4,
        "late: policy: aside takes the rows of shop.orders, and AS OF _commit its history",
        "write AS OF a column with the time, or policy: keep",
    )


def test_rows_wait_beside_tables_as_they_were_only_if_late_rows_are_kept(tmp_path: Path) -> None:
    late = "/* ---\nlate: {column: rates.at, allowed: 1 hour}\n--- */\n"
    waits = "LEFT JOIN shop.rates AS r ON r.id = o.id AND r.at < o.paid_at + INTERVAL '1 hour'"
    text = f"{late}{QUERY.replace('o.id, c.tier', 'o.id, o.paid_at, c.tier, r.id AS rate')} {waits}"

    found = definition(tmp_path, text)
    assert [one.name for one in found.inputs] == ["orders", "customers_past", "rates", "q__late"]
    aside = problem(tmp_path, text.replace("1 hour}", "1 hour, policy: aside}"))
    assert (aside.line, aside.message, aside.remedy) == (
        2,
        "late: policy: aside of shop.rates, which is joined, is refused beside AS OF",
        "derive one over the other, or policy: keep",
    )


JOIN = "JOIN shop.customers FOR SYSTEM_TIME AS OF o.paid_at AS c ON c.id = o.customer_id"
SELECT = "SELECT o.id, c.tier FROM shop.orders AS o\n"
REFUSED = {
    SELECT + JOIN.replace("AS OF o.paid_at", "BETWEEN o.a AND o.b"): (2, 6, "of the FOR clauses"),
    SELECT + JOIN.replace("o.paid_at", "now()"): (2, 43, "now() is refused"),
    SELECT + JOIN.replace("o.paid_at", "o.paid_at + INTERVAL '1 day'"): (
        2, 6, "FOR SYSTEM_TIME AS OF takes a column or a constant"),
    SELECT + JOIN.replace("o.paid_at", "DATE '2024-01-31'"): (2, 6, "FOR SYSTEM_TIME AS OF takes"),
    SELECT + JOIN.replace("o.paid_at", "TIMESTAMP 'yesterday'"): (2, 6, "FOR SYSTEM_TIME AS OF ta"),
    SELECT + JOIN.replace("o.paid_at", "paid_at"): (2, 43, "paid_at has no table"),
    SELECT + JOIN.replace("o.paid_at", "c.paid_at"): (2, 43, "c is no table before it"),
    SELECT + JOIN.replace("o.paid_at", "x.paid_at"): (2, 43, "x is no table before it"),
    SELECT + "LEFT " + JOIN.replace("c.id = o.customer_id", "c.id > o.customer_id"): (
        2, 11, "FOR SYSTEM_TIME AS OF a row needs an equality of columns in ON"),
    SELECT + JOIN.replace("c.id = o.customer_id", "c.id = 7"): (2, 6, "FOR SYSTEM_TIME AS OF a ro"),
    SELECT + JOIN.replace("c.id = o.customer_id", "c.id = o.customer_id OR c.id = 7"): (
        2, 6, "FOR SYSTEM_TIME AS OF a row needs"),
    SELECT + JOIN.replace("ON c.id = o.customer_id", "USING (id)"): (
        2, 6, "FOR SYSTEM_TIME with USING is refused"),
    SELECT + "RIGHT " + JOIN: (2, 12, "FOR SYSTEM_TIME beside a RIGHT or FULL join is refused"),
    SELECT + JOIN + " FULL JOIN shop.rates AS r ON r.id = o.id": (2, 6, "FOR SYSTEM_TIME beside a"),
    SELECT + "CROSS JOIN shop.customers FOR SYSTEM_TIME AS OF o.paid_at AS c": (
        2, 12, "FOR SYSTEM_TIME AS OF a row needs"),
    "WITH d AS (SELECT p.id, p.paid_at FROM shop.orders AS p) SELECT o.id FROM shop.orders AS o\n"
    "JOIN d FOR SYSTEM_TIME AS OF o.paid_at AS c ON c.id = o.id": (2, 6, "d is no captured table"),
    "SELECT o.id, c.tier FROM (SELECT p.id, p.customer_id FROM shop.orders AS p) AS o\n"
    + JOIN.replace("paid_at", "_commit"): (2, 43, "o is a query, whose rows no transaction"),
    "SELECT o.window_end, c.tier FROM sessions(shop.orders, at, INTERVAL '1 hour', id) AS o\n"
    + JOIN.replace("paid_at", "_commit"): (2, 43, "o is in sessions"),
    SELECT.replace("shop.orders", "marts.sums") + JOIN.replace("paid_at", "_commit"): (
        1, 26, "marts.sums is a derived table, whose rows no transaction inserts"),
    SELECT + JOIN.replace("shop.customers", "marts.sums"): (
        2, 6, "marts.sums is a derived table, and has no history"),
    SELECT + JOIN.replace("shop.customers", "shop.rates"): (2, 6, "shop.rates has no history"),
    SELECT.replace("shop.orders", "shop.rates") + JOIN.replace("paid_at", "_commit"): (
        1, 26, "shop.rates has no history"),
    SELECT.replace("c.tier", "c.name") + JOIN: (
        1, 14, "the history marts.customers_past does not track name"),
    SELECT.replace("c.tier", "name") + JOIN: (
        1, 14, "name may be a column that the history marts.customers_past does not track"),
    SELECT + "JOIN hop(shop.customers, at, INTERVAL '1 hour', INTERVAL '2 hours') FOR SYSTEM_TIME "
    "AS OF o.paid_at AS c ON c.id = o.customer_id": (2, 6, "VERSION is refused with hop"),
    SELECT + JOIN.replace("SYSTEM_TIME", "VERSION"): (2, 6, "of the FOR clauses, only"),
    SELECT + JOIN.replace("shop.customers", "shop.custmers"): (2, 6, "no table shop.custmers"),
}  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_what_cannot_be_kept_is_refused_at_its_place(tmp_path: Path, text: str) -> None:
    line, column, message = REFUSED[text]

    found = problem(tmp_path, text)

    assert (found.line, found.column) == (line, column), str(found)
    assert found.message.startswith(message)
    assert found.remedy


def test_the_remedy_names_the_history_to_declare(tmp_path: Path) -> None:
    no_history = problem(tmp_path, SELECT + JOIN.replace("shop.customers", "shop.rates"))
    untracked = problem(tmp_path, SELECT.replace("c.tier", "c.name") + JOIN)

    assert no_history.remedy == (
        "declare one: a file shop.rates_past.sql with kind: history and table: shop.rates"
    )
    assert untracked.remedy == "declare one with track: [id, tier, name] and another name"


def test_of_several_histories_none_is_chosen(tmp_path: Path) -> None:
    other = PAST.format("customers", "")

    found = problem(tmp_path, QUERY, other=other)

    assert found.message == (
        "shop.customers has several histories: marts.customers_past, marts.other"
    )
    assert found.remedy == "name the one to read in FROM, or keep one"


def test_without_a_history_of_its_own_a_row_has_no_transaction(tmp_path: Path) -> None:
    found = read(tmp_path, BY_COMMIT)
    assert found.problems == []
    (tmp_path / "marts.orders_past.sql").unlink()

    (told,) = declared(tmp_path, CAPTURED).distinct_problems

    assert str(told) == f"{tmp_path}/marts.q.sql:1:26: shop.orders has no history"
