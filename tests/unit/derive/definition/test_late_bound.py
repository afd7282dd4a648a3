"""How long rows wait is read from the condition of a LEFT JOIN, and refused at its place."""

import pytest

from cdc.derive.definition.folder import read_file
from cdc.derive.late.rule import Bound, LateRule
from cdc.tables import TableId
from tests.unit.derive.definition.reading import definition, problems

MINUTE = 60_000_000
LATE = "late: {column: payments.paid_at, allowed: 10 minutes}"
ASIDE = LATE.replace("}", ", policy: aside}")
BETWEEN = "p.paid_at BETWEEN o.placed_at AND o.placed_at + INTERVAL '15 minutes'"
PAYMENTS = "LEFT JOIN shop.payments AS p ON p.order_id = o.id"
SHOWN = "o.id, o.placed_at AS since, p.id AS payment"


def text(matter: str = LATE, bound: str = BETWEEN, shown: str = SHOWN, more: str = "") -> str:
    query = f"SELECT {shown} FROM shop.orders AS o {PAYMENTS} AND {bound} {more}"
    return f"/* ---\n{matter}\n--- */\n{query}"


def rule_of(written: str) -> LateRule:
    rule = definition(written).late
    assert rule is not None
    return rule


def test_the_rule_is_read_with_its_bound() -> None:
    rows, judged = read_file("marts.sales.sql", "marts.sales.sql", text())[0]

    rule = LateRule(
        table=TableId("shop", "payments"),
        window=Bound(time="paid_at", length=15 * MINUTE),
        shown="since",
        shows_end=False,
        allowed=10 * MINUTE,
        rows=TableId("marts", "sales__late"),
    )
    assert (rows.late_rows, judged.late) == (rule, rule)
    assert rows.inputs == (rule.table,)
    assert judged.inputs == (TableId("shop", "orders"), rule.table, rule.rows)
    assert judged.columns == ("id", "since", "payment", "_final")


@pytest.mark.parametrize(
    ("bound", "minutes"),
    [
        (BETWEEN, 15),
        ("p.paid_at <= o.placed_at", 0),
        ("p.paid_at < o.placed_at + INTERVAL '2 hours'", 120),
        ("o.placed_at + INTERVAL '1 hour' + INTERVAL '1 minute' >= p.paid_at", 61),
        ("(o.placed_at > p.paid_at AND p.id > 0)", 0),
        ("p.paid_at <= o.placed_at - INTERVAL '1 day'", -24 * 60),
        (f"p.paid_at > o.placed_at - INTERVAL '5 minutes' AND {BETWEEN}", 15),
    ],
)
def test_the_bound_may_be_written_in_several_ways(bound: str, minutes: int) -> None:
    rule = rule_of(text(bound=bound))

    assert rule.window == Bound(time="paid_at", length=minutes * MINUTE)
    assert rule.rest == minutes * MINUTE


@pytest.mark.parametrize("column", ["paid_at", "p.paid_at", "payments.paid_at"])
@pytest.mark.parametrize("policy", ["keep", "aside"])
def test_only_final_rows_may_be_shown_with_both_policies(column: str, policy: str) -> None:
    late = f"late: {{column: {column}, allowed: 1 day, policy: {policy}}}"
    rule = rule_of(text(f"{late}\nemit: final"))

    assert (rule.window.time, rule.policy, rule.emits_final) == ("paid_at", policy, True)


def test_another_bound_judges_no_row_anew() -> None:
    one, other = (
        read_file("marts.sales.sql", "marts.sales.sql", text(bound=bound))[0]
        for bound in (BETWEEN, BETWEEN.replace("15", "20"))
    )

    assert one[0].hash == other[0].hash
    assert one[1].hash != other[1].hash


def test_which_bound_is_meant_belongs_to_the_definition() -> None:
    again = "LEFT JOIN shop.payments AS q ON q.id = o.id AND q.paid_at <= o.placed_at"
    one, other = (
        definition(text(LATE.replace("payments", alias), more=again)) for alias in ("p", "q")
    )

    assert one.hash != other.hash


OTHER = "LEFT JOIN shop.refunds AS r ON r.id = o.id"
FINAL = f"{SHOWN}, o.id AS _final"
HOUR = "tumble(shop.orders, placed_at, INTERVAL '1 hour')"


@pytest.mark.parametrize(
    ("written", "place", "message", "remedy"),
    [
        (
            text(bound="p.id > 0"),
            "2:8",
            "late: nothing in ON bounds the time of shop.payments",
            "write one: p.ts <= o.ts + INTERVAL '15 minutes'",
        ),
        (text(bound=f"({BETWEEN} OR p.id > 0)"), "2:8", "late: nothing in ON bounds", "write one"),
        (text(bound="p.paid_at >= o.placed_at"), "2:8", "late: nothing in ON bounds", "write one"),
        (text(bound="p.paid_at <= p.due_at"), "2:8", "late: nothing in ON bounds", "write one"),
        (text(bound="paid_at <= o.placed_at"), "2:8", "late: nothing in ON bounds", "write one"),
        (
            text(bound=f"{BETWEEN} AND p.paid_at < o.due_at"),
            "2:8",
            "late: ON has 2 bounds of the time of shop.payments",
            "write one: p.paid_at <= o.ts",
        ),
        (
            text().replace("LEFT JOIN", "JOIN"),
            "2:8",
            "late: shop.payments has no window, and no row waits for it in a LEFT JOIN",
            "use tumble, hop or sessions, or LEFT JOIN the table",
        ),
        (text().replace("LEFT", "FULL"), "2:8", "late: shop.payments has no window", "use tumble"),
        (
            text(LATE.replace("payments.paid_at", "orders.placed_at")),
            "2:8",
            "late: shop.orders has no window",
            "use tumble",
        ),
        (
            text(shown="q.id").replace("FROM", "FROM (SELECT o.id FROM", 1) + ") AS q",
            "2:8",
            "late: its join is in a subquery",
            "write it in FROM of the outermost SELECT",
        ),
        (
            text(shown="o.id, p.id AS payment"),
            "2:8",
            "late: the result does not have the time from which its rows wait",
            "add o.placed_at to the SELECT",
        ),
        (text(shown=FINAL), "2:1", "late adds a column _final", "rename that one"),
        (
            text(more=OTHER.replace("LEFT", "RIGHT")),
            "2:8",
            "late: o.placed_at is NULL where a join has no match",
            "bound the time by a table of FROM",
        ),
        (
            text().replace(PAYMENTS, f"{OTHER} {PAYMENTS}").replace("o.placed_at", "r.at"),
            "2:8",
            "late: r.at is NULL where a join has no match",
            "bound",
        ),
        (
            text(more=PAYMENTS.replace("p", "q").replace("shoq.qayments", "shop.payments")),
            "2:8",
            "late: the query has 2 tables with payments.paid_at",
            "name one: p.paid_at, q.paid_at",
        ),
        (
            text(
                ASIDE.replace("payments.", "p."),
                more="LEFT JOIN shop.payments AS q ON q.id = o.id",
            ),
            "2:48",
            "late: policy: aside needs shop.payments once in the query",
            "derive the other part",
        ),
        (
            text(LATE.replace("paid_at", "at")),
            "2:8",
            "late: nothing in ON bounds the time of shop.payments",
            "write one",
        ),
        (
            text(LATE.replace("payments.paid_at", "at")),
            "2:8",
            "late: no window of the query is by at",
            "use tumble, hop or sessions, or LEFT JOIN the table with a bound on its time in ON",
        ),
    ],
)
def test_a_join_that_it_does_not_fit_is_refused(
    written: str, place: str, message: str, remedy: str
) -> None:
    (found,) = problems(written)

    assert str(found).startswith(f"marts.sales.sql:{place}: {message}")
    assert found.remedy.startswith(remedy)


def test_rows_in_windows_may_wait_too() -> None:
    written = text().replace("FROM shop.orders AS o", f"FROM {HOUR} AS o")

    assert rule_of(written).window == Bound(time="paid_at", length=15 * MINUTE)


def test_late_rows_are_put_aside_by_versions() -> None:
    read = definition(text(ASIDE))

    assert '"_cdc_late"."versions" AS "p"' in read.duckdb
    assert '"shop"."payments"' in read.postgres
    assert "_cdc_late" not in read.postgres
