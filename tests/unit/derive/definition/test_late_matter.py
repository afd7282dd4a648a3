"""What a definition says of late rows is read with its query, and refused at its place."""

import pytest

from cdc.derive.definition.folder import read_file
from cdc.derive.late.rule import LateRule
from cdc.derive.sql.event_window import EventWindow
from cdc.tables import TableId
from tests.unit.derive.definition.reading import definition, problem, problems

MINUTE = 60_000_000
HOURLY = "tumble(shop.orders, ts, INTERVAL '1 hour')"
HOP = "hop(shop.orders, ts, INTERVAL '1 hour', INTERVAL '2 hours')"
SESSIONS = "sessions(shop.orders, ts, INTERVAL '1 hour')"
LATE = "late: {column: ts, allowed: 10 minutes}"


def text(matter: str, form: str = HOURLY, shown: str = "w.window_end") -> str:
    query = f"SELECT {shown}, count(*) AS n FROM {form} AS w GROUP BY {shown}"
    return f"/* ---\n{matter}\n--- */\n{query}\n"


def test_the_rule_is_read_with_its_window() -> None:
    matter = "late: {column: ts, allowed: 1 day, policy: aside, idle: 2 hours}\nemit: final"

    rows, judged = read_file("marts.sales.sql", "marts.sales.sql", text(matter))[0]

    hour = 60 * MINUTE
    rule = LateRule(
        table=TableId("shop", "orders"),
        window=EventWindow(form="tumble", time="ts", length=hour, slide=hour),
        shown="window_end",
        shows_end=True,
        allowed=24 * hour,
        rows=TableId("marts", "sales__late"),
        idle=2 * hour,
        policy="aside",
        emits_final=True,
    )
    assert (rows.late_rows, judged.late) == (rule, rule)
    assert (rows.table, rows.inputs) == (rule.rows, (rule.table,))
    assert judged.inputs == (rule.table, rule.rows)
    assert judged.columns == ("window_end", "n")


@pytest.mark.parametrize("column", ["ts", "w.ts", "orders.ts", "shop.orders.ts"])
def test_the_column_may_have_its_table(column: str) -> None:
    read = definition(text(f"late: {{column: {column}, allowed: 0 seconds}}"))

    assert read.late is not None
    assert (read.late.window.time, read.late.allowed, read.late.policy) == ("ts", 0, "keep")
    assert read.columns == ("window_end", "n", "_final")


@pytest.mark.parametrize("policy", ["keep", "aside"])
@pytest.mark.parametrize("form", [HOURLY, HOP, SESSIONS])
def test_rows_are_put_aside_in_each_window(policy: str, form: str) -> None:
    """What is put aside is so in a window, and not in the table that the query would read."""
    matter = f"late: {{column: ts, allowed: 1 day, policy: {policy}}}"
    read = definition(text(matter, form=form))

    assert read.late is not None
    assert (read.late.policy, read.late.window.time) == (policy, "ts")
    assert ('"shop"."orders"' in read.duckdb) == (policy == "keep")
    assert "shop" in read.postgres


def test_the_start_of_a_window_says_when_it_ends() -> None:
    read = definition(text(LATE, shown="w.window_start"))

    assert read.late is not None
    assert (read.late.shown, read.late.rest) == ("window_start", 60 * MINUTE)


def test_what_is_said_belongs_to_the_definition() -> None:
    texts = [
        "doc: x",
        LATE,
        LATE.replace("10", "11"),
        LATE.replace("}", ", policy: aside}"),
        LATE.replace("}", ", idle: 1 hour}"),
        LATE.replace("}", ", policy: aside}") + "\nemit: final",
    ]

    assert len({definition(text(matter)).hash for matter in texts}) == len(texts)


@pytest.mark.parametrize(
    ("matter", "place", "message", "remedy"),
    [
        ("late: 5", "2:1", "late: it has no keys", "write {column: ts, allowed: 10 minutes}"),
        ("late: {column: ts, allowed: 1 day, colum: x}", "2:36", "unknown key late.colum", "did"),
        ("late: {column: ts}", "2:1", "late.allowed: field required", "correct the value"),
        (
            "late:\n  column: ts\n  allowed: 1 month",
            "4:3",
            "late.allowed: write a number of seconds, minutes, hours or days",
            "correct the value",
        ),
        (
            "doc: x\nlate:\n  column: paid_at\n  allowed: 1 day",
            "4:3",
            "late: no window of the query is by paid_at",
            "choose one of shop.orders.ts",
        ),
        ("late: {column: people.ts, allowed: 1 day}", "2:8", "late: no window of", "choose one"),
        ("late: {column: ts, allowed: 1 day, policy: drop}", "2:36", "late.policy: input", "corr"),
        ("emit: final", "2:1", "emit: final without late", "write late: {column: ts"),
        (f"{LATE}\nemit: final", "3:1", "emit: final needs policy: aside", "write policy: aside"),
        ("emit: later", "2:1", "emit: input should be 'updates' or 'final'", "correct the value"),
    ],
)
def test_it_is_refused_at_its_place(matter: str, place: str, message: str, remedy: str) -> None:
    found = problem(text(matter))

    assert str(found).startswith(f"marts.sales.sql:{place}: {message}")
    assert found.remedy.startswith(remedy)


ASIDE = LATE.replace("}", ", policy: aside}")
PLAIN = "SELECT o.id FROM shop.orders AS o"
INSIDE = f"SELECT q.n FROM (SELECT w.n FROM {HOURLY} AS w) AS q"
TWO = f"SELECT v.window_end FROM {HOURLY} AS v JOIN {HOURLY} AS w ON v.id = w.id"
TWICE = f"SELECT w.window_end FROM {HOURLY} AS w JOIN shop.orders AS o ON o.id = w.id"
NAMED = f'SELECT w.window_end, w.a AS "_final" FROM {HOURLY} AS w'


@pytest.mark.parametrize(
    ("matter", "query", "place", "message"),
    [
        (LATE, PLAIN, "2:8", "late: no window of the query is by ts"),
        (LATE, INSIDE, "2:8", "late: its window is in a subquery"),
        (LATE, TWO, "2:8", "late: the query has 2 windows by ts"),
        (LATE, NAMED, "2:1", "late adds a column _final, which the query has"),
        (LATE, f"SELECT w.n FROM {HOURLY} AS w", "2:8", "late: the result does not have the end"),
        (LATE, f"SELECT w.window_start FROM {SESSIONS} AS w", "2:8", "late: the result does not"),
        (ASIDE, TWICE, "2:41", "late: policy: aside needs shop.orders once in the query"),
    ],
)
def test_a_query_that_it_does_not_fit_is_refused(
    matter: str, query: str, place: str, message: str
) -> None:
    (found,) = problems(f"/* ---\n{matter}\n--- */\n{query}")

    assert str(found).startswith(f"marts.sales.sql:{place}: {message}")


@pytest.mark.parametrize("key", ["late: {column: ts, allowed: 1 day}", "emit: updates"])
def test_patterns_have_no_late_rows(key: str) -> None:
    pattern = "SELECT * FROM s.t MATCH_RECOGNIZE (ORDER BY ts MEASURES A.id AS a PATTERN (A B)"
    found = problems(f"/* ---\nkind: pattern\nwithin: 1 day\n{key}\n--- */\n{pattern})")

    assert f"marts.sales.sql:4:1: {key.partition(':')[0]} is no key of patterns" in map(str, found)
