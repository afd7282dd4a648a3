"""A window of event time is read from FROM, and what it cannot mean is refused at its place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc.derive.definition.folder import read_definition
from cdc.tables import TableId
from tests.unit.derive.definition.reading import definition, problem, problems

TUMBLE = "write schema.table"
WHOLE = "write one whole number of days"
TEXTS = {
    "tumble(s.t, ts, INTERVAL '1 month')": (15, "tumble by months or years", "use date_trunc"),
    "tumble(s.t, ts, INTERVAL '2 years')": (15, "tumble by months or years", "use date_trunc"),
    "tumble(s.t, ts, INTERVAL '0 days')": (15, "an interval of tumble is not", "write one from"),
    "tumble(s.t, ts, INTERVAL '-5 minutes')": (15, "an interval of tumble is not", "write one"),
    "tumble(s.t, ts, INTERVAL '36501 days')": (15, "an interval of tumble is longer", "write one"),
    "tumble(s.t, ts, INTERVAL '1.5 hours')": (15, "this interval of tumble is", WHOLE),
    "tumble(s.t, ts, INTERVAL '1 hour 5 minutes')": (15, "this interval of tumble is", WHOLE),
    "tumble(s.t, ts, INTERVAL '1 week')": (15, "this interval of tumble is", WHOLE),
    "tumble(s.t, ts, n)": (15, "this interval of tumble is", WHOLE),
    "tumble(s.t, ts, 3600)": (15, "this interval of tumble is", WHOLE),
    "tumble(s.t, ts)": (15, "tumble lacks arguments", "write tumble(schema.table, ts,"),
    "tumble(t, ts, INTERVAL '1 hour')": (22, "the first argument of tumble is no table", TUMBLE),
    "tumble(c.s.t, ts, INTERVAL '1 hour')": (22, "the first argument of tumble is no", TUMBLE),
    "tumble((SELECT a FROM s.t), ts, INTERVAL '1 hour')": (15, "the first argument", TUMBLE),
    "tumble(s.t, s.ts, INTERVAL '1 hour')": (27, "a column in tumble has a table", "write the"),
    "tumble(s.t, ts + 1, INTERVAL '1 hour')": (15, "an argument of tumble is no column", "write"),
    "tumble(s.t, _cdc_at, INTERVAL '1 hour')": (27, "_cdc_at is a column of wal2lake's", "use"),
    "tumble(s.t, user, INTERVAL '1 hour')": (27, "user is a reserved word", "to name a column"),
    "tumble(s.t, ts, INTERVAL '1 hour', '2024-01-01')": (15, "the last argument of tumble", "lea"),
    "tumble(s.t, ts, INTERVAL '1 hour', TIMESTAMP '2024-01-32')": (15, "the last argument", "lea"),
    "tumble(s.t, ts, INTERVAL '1 hour', TIMESTAMPTZ '2024-01-01')": (15, "the last arg", "leave"),
    "tumble(s.t, ts, INTERVAL '1 hour', TIMESTAMP '2024-01-01', 1)": (15, "the last arg", "leave"),
    "tumble(s.t, ts, INTERVAL '1 hour') WITH ORDINALITY": (15, "ORDINALITY is refused", "leave"),
    "s.tumble(s.t, ts, INTERVAL '1 hour')": (17, "tumble is refused here", "write FROM tumble("),
    "hop(s.t, ts, INTERVAL '1 hour')": (15, "hop lacks arguments", "write hop(schema.table"),
    "hop(s.t, ts, INTERVAL '2 hours', INTERVAL '3 hours')": (15, "the size of hop is not", "write"),
    "hop(s.t, ts, INTERVAL '2 hours', INTERVAL '1 hour')": (15, "the size of hop is not", "write"),
    "hop(s.t, ts, INTERVAL '1 minute', INTERVAL '101 minutes')": (15, "each row would be in 101",
    "write a longer slide"),
    "hop(s.t, ts, INTERVAL '0 hours', INTERVAL '1 hour')": (15, "an interval of hop is not", "wri"),
    "sessions(s.t, ts, INTERVAL '1 month', k)": (15, "sessions by months or years", "use date_tr"),
    "sessions(s.t, ts, INTERVAL '1 hour', k || 'x')": (15, "an argument of sessions is no", "wri"),
    "sessions(s.t, ts, INTERVAL '1 hour', _cdc_key)": (52, "_cdc_key is a column of", "use the"),
    "tumbl(s.t, ts, INTERVAL '1 hour')": (15, "unknown function tumbl()", "did you mean tumble()"),
}  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
def test_it_is_refused_at_its_place(text: str) -> None:
    column, message, remedy = TEXTS[text]

    found = problem(f"SELECT a FROM {text}")

    assert (found.line, found.column) == (1, column), str(found)
    assert found.message.startswith(message)
    assert found.remedy.startswith(remedy)


def test_a_window_stands_in_from() -> None:
    found = problem("SELECT a,\n tumble(s.t, ts, INTERVAL '1 hour') AS x FROM s.t")

    assert str(found) == "marts.sales.sql:2:2: tumble is refused here"
    assert found.remedy == "write FROM tumble(schema.table, ts, INTERVAL '1 hour')"


def test_every_problem_of_windows_is_reported() -> None:
    found = problems(
        "SELECT a.x FROM tumble(s.t, _cdc_x, INTERVAL '1 hour') AS a\n"
        "JOIN sessions(s.t, ts, INTERVAL '1 year') AS b ON a.x = b.x"
    )

    assert [(each.line, each.column) for each in found] == [(1, 29), (2, 6)]


def test_the_table_of_a_window_is_an_input_at_its_place() -> None:
    read = definition(
        "SELECT h.x FROM tumble(Shop.\"Orders\", ts, INTERVAL '1 hour') AS w\n"
        "JOIN hop(shop.clicks, at, INTERVAL '1 hour', INTERVAL '2 hours') AS h ON h.x = w.x,\n"
        " sessions(marts.low, at, INTERVAL '1 hour', x, y)"
    )

    names = ["shop.Orders", "shop.clicks", "marts.low"]
    assert [str(table) for table in read.inputs] == names
    assert read.places == ((1, 24), (2, 10), (3, 11))


def test_a_window_without_a_name_has_that_of_its_table() -> None:
    read = definition(
        "SELECT clicks.window_start AS a FROM hop(s.clicks, at, INTERVAL '1 day', INTERVAL '1 day')"
    )

    assert read.postgres.endswith(') AS "clicks"')
    assert read.inputs == (TableId("s", "clicks"),)


def test_the_key_may_be_a_window() -> None:
    read = definition(
        "SELECT w.window_start, w.k, count(*) AS n "
        "FROM tumble(s.t, ts, INTERVAL '1 hour') AS w GROUP BY w.window_start, w.k"
    )

    assert read.key == ("window_start", "k")


SAME = "SELECT w.a FROM tumble(s.t, ts, INTERVAL '2 hours') AS w"


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("select W.a from TUMBLE ( S.T , TS , interval '120' minute ) w", True),
        ("SELECT w.a FROM tumble(s.t, ts, INTERVAL '2 hours', TIMESTAMP '1970-01-01') AS w", True),
        ("SELECT w.a FROM tumble(s.t, ts, INTERVAL '2 hours', TIMESTAMP '1970-01-02') AS w", True),
        ("SELECT w.a FROM tumble(s.t, ts, INTERVAL '2 hours', '1970-01-02'::timestamp) w", True),
        ("SELECT w.a FROM tumble(s.t, ts, INTERVAL '3 hours') AS w", False),
        ("SELECT w.a FROM tumble(s.t, t2, INTERVAL '2 hours') AS w", False),
        ("SELECT w.a FROM tumble(s.u, ts, INTERVAL '2 hours') AS w", False),
        (
            "SELECT w.a FROM tumble(s.t, ts, INTERVAL '2 hours', TIMESTAMP '2024-01-01 01:00') w",
            False,
        ),
        ("SELECT w.a FROM hop(s.t, ts, INTERVAL '1 hour', INTERVAL '2 hours') AS w", False),
        ("SELECT w.a FROM sessions(s.t, ts, INTERVAL '2 hours') AS w", False),
        ("SELECT w.a FROM sessions(s.t, ts, INTERVAL '2 hours', k) AS w", False),
    ],
)
def test_the_hash_sees_another_window(text: str, same: bool) -> None:
    assert (definition(text).hash == definition(SAME).hash) == same


def test_an_output_may_have_the_name_of_the_time() -> None:
    read = definition("SELECT w.a + 1 AS ts FROM tumble(s.t, ts, INTERVAL '1 hour') AS w")

    assert read.columns == ("ts",)


@pytest.mark.parametrize(
    "frame",
    [
        "ORDER BY a ROWS BETWEEN 1 PRECEDING AND CURRENT ROW",
        "ORDER BY a RANGE BETWEEN 1 PRECEDING AND CURRENT ROW",
        "ORDER BY a RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
        "ORDER BY a RANGE BETWEEN INTERVAL '1 day' FOLLOWING AND CURRENT ROW",
        "ORDER BY a RANGE BETWEEN INTERVAL '1 day' PRECEDING AND INTERVAL '1 day' FOLLOWING",
        "ORDER BY a, b RANGE BETWEEN INTERVAL '1 day' PRECEDING AND CURRENT ROW",
        "ORDER BY a + 1 RANGE BETWEEN INTERVAL '1 day' PRECEDING AND CURRENT ROW",
        "ORDER BY a GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW",
    ],
)
def test_other_frames_are_refused(frame: str) -> None:
    found = problem(f"SELECT sum(c) OVER ({frame}) AS x FROM s.t")

    assert found.message == "this frame is refused"
    assert "RANGE BETWEEN INTERVAL '1 hour' PRECEDING AND CURRENT ROW" in found.remedy


@pytest.mark.parametrize(
    ("call", "end", "message"),
    [
        ("sum(a)", "'1 month' PRECEDING AND CURRENT ROW", "an interval of this form is refused"),
        ("rank()", "'1 day' PRECEDING AND CURRENT ROW", "this frame is refused"),
        ("sum(a)", "'1 day' PRECEDING AND CURRENT ROW EXCLUDE TIES", "EXCLUDE is refused in"),
    ],
)
def test_other_uses_of_the_frame_are_refused(call: str, end: str, message: str) -> None:
    found = problem(f"SELECT {call} OVER (ORDER BY a RANGE BETWEEN INTERVAL {end}) AS x FROM s.t")

    assert found.message.startswith(message)


ARGUMENTS = (
    *("s.t", "t", "c.s.t", "ts", "s.*", "*", "NULL", "1", "'x'", "ts + 1", "k DESC", "DISTINCT k"),
    *("(SELECT 1)", "INTERVAL '1 hour'", "INTERVAL '2' HOUR", "INTERVAL 'x'", "INTERVAL '1 month'"),
    *("INTERVAL '1' DAY TO SECOND", "INTERVAL '999999999999999 days'", "TIMESTAMP '2024-01-01'"),
    *(
        "TIMESTAMP '9999-99-99'",
        "TIMESTAMP ts",
        "k => 1",
        "VARIADIC k",
        "tumble(s.t, ts)",
        "s.t AS x",
    ),
)


@given(
    form=st.sampled_from(["tumble", "hop", "sessions", "s.tumble", '"hop"']),
    arguments=st.lists(st.sampled_from(ARGUMENTS), max_size=6),
)
def test_no_arguments_make_it_fail(form: str, arguments: list[str]) -> None:
    text = f"SELECT w.a FROM {form}({', '.join(arguments)}) AS w"

    read, found = read_definition("x.sql", "a.x.sql", text)

    assert (read is None) == bool(found)
