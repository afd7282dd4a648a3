"""A definition of a pattern is read from its clauses, or refused at its place."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc.derive.definition.definition import Definition
from cdc.derive.definition.folder import read_definition
from cdc.derive.definition.inlined import beyond_sql
from cdc.tables import TableId
from tests.unit.derive.definition.reading import definition, problem, problems

FRONT = "/* ---\nkind: pattern\nwithin: 10 minutes\n--- */\n"
BEGIN = "SELECT * FROM shop.pay MATCH_RECOGNIZE ("
MEASURES = "ORDER BY ts MEASURES a.id AS id "


def pattern(clauses: str, front: str = FRONT) -> Definition:
    return definition(f"{front}{BEGIN}{clauses})")


def test_the_clauses_of_a_definition_are_read() -> None:
    read = pattern(
        'PARTITION BY card, "Land" ORDER BY ts ASC, id '
        'MEASURES a.id AS first_id, SUM(b.x) AS "Sum" '
        "ONE ROW PER MATCH AFTER MATCH SKIP TO LAST b PATTERN (a b+?) DEFINE b AS x > 1"
    )

    assert (read.inputs, read.columns) == (
        (TableId("shop", "pay"),),
        ("card", "Land", "first_id", "Sum"),
    )
    assert (read.key, read.postgres, read.places) == ((), "", ((5, 15),))
    assert read.pattern is not None
    assert (read.pattern.partition, read.pattern.order) == (("card", "Land"), ("ts", "id"))
    assert (read.pattern.skip, read.pattern.target) == ("to last", "b")
    assert read.pattern.bounds.within == 600 * 10**6
    assert read.pattern.bounds.most_rows == 100_000
    assert [name for name, _ in read.pattern.conditions] == ["b"]


def test_a_bound_of_rows_is_enough() -> None:
    front = "/* ---\nkind: pattern\nmax_partition_rows: 7\nkey: [id]\n--- */\n"

    read = pattern(MEASURES + "PATTERN (a) DEFINE a AS x > 1", front)

    assert read.pattern is not None
    assert (read.pattern.bounds.within, read.pattern.bounds.most_rows) == (None, 7)
    assert read.key == ("id",)


@pytest.mark.parametrize("front", ["/* ---\nkind: pattern\n--- */\n"])
def test_a_pattern_without_end_is_refused(front: str) -> None:
    """Hazard 28."""
    found = problem(f"{front}{BEGIN}{MEASURES}PATTERN (a b* c) DEFINE a AS x > 1)")

    assert str(found) == "marts.sales.sql:2:1: a pattern without within has no end"
    assert found.remedy == "write within: 10 minutes, or max_partition_rows: 10000"


def test_layout_changes_no_hash_and_meaning_does() -> None:
    one = pattern(MEASURES + "PATTERN (a b) DEFINE a AS x > 1, b AS a.y = y")
    same = pattern(
        "order by TS\nmeasures A.ID as Id -- why\n one row per match "
        "after match skip past last row pattern (A\n(b)) define A as X>1, b as A.y = /* */ Y"
    )
    others = [
        pattern(MEASURES + "PATTERN (a b) DEFINE a AS x > 2, b AS a.y = y"),
        pattern(MEASURES + "PATTERN (a b+) DEFINE a AS x > 1, b AS a.y = y"),
        pattern(MEASURES + "AFTER MATCH SKIP TO NEXT ROW PATTERN (a b) DEFINE a AS x > 1"),
        pattern(
            MEASURES + "PATTERN (a b) DEFINE a AS x > 1, b AS a.y = y", FRONT.replace("10", "9")
        ),
    ]

    assert one.hash == same.hash
    assert len({one.hash, *(other.hash for other in others)}) == 1 + len(others)


REFUSED = {
    "PATTERN (a) DEFINE a AS x > 1": (1, 41, "ORDER BY is expected here, and not PATTERN", "write"),
    "ORDER BY ts DESC": (1, 53, "DESC is refused here", "order by ascending columns"),
    "ORDER BY ts + 1": (1, 53, "MEASURES is expected here, and not +", "write SELECT *"),
    "PARTITION BY 1 ORDER BY ts": (1, 54, "1 is no name", "name a column"),
    "ORDER BY ts MEASURES a.id PATTERN (a)": (1, 62, "a measure has no name", "write x AS name"),
    MEASURES + "ALL ROWS PER MATCH": (1, 73, "PATTERN is expected here, and not ALL", "write"),
    MEASURES + "AFTER MATCH SKIP TO FIRST z PATTERN (a) DEFINE a AS x > 1": (
        1, 99, "the pattern has no variable z", "skip to a variable"),
    MEASURES + "AFTER MATCH SKIP TO z": (1, 93, "LAST is expected here, and not z", "write"),
    MEASURES + "PATTERN (a*) DEFINE a AS x": (1, 82, "the pattern can match no row", "write A+"),
    MEASURES + "PATTERN ((a?)* b) DEFINE a AS x": (1, 82, "a part that repeats", "let the part"),
    MEASURES + "PATTERN (a{2}{3}) DEFINE a AS x": (1, 86, "two quantifiers", "use parentheses"),
    MEASURES + "PATTERN (a{3,2}) DEFINE a AS x": (1, 83, "{3,2} is refused", "write {2}"),
    MEASURES + "PATTERN (a ^ b) DEFINE a AS x": (1, 84, "^ is refused here", "use variables"),
    MEASURES + "PATTERN (PERMUTE(a)) DEFINE a AS x": (1, 82, "PERMUTE is refused", "write the"),
    MEASURES + "PATTERN ({- a -} b) DEFINE a AS x": (1, 82, "{ is refused here", "use var"),
    MEASURES + "PATTERN (a | ) DEFINE a AS x": (1, 86, "the pattern ends too early", "use"),
    MEASURES + "PATTERN (a{999}) DEFINE a AS x": (1, 82, "the pattern repeats its parts", "write"),
    MEASURES + "PATTERN (a) SUBSET u = (a)": (1, 85, "DEFINE is expected here", "write"),
    MEASURES + "PATTERN (a) DEFINE a": (1, 92, "a variable has no condition", "write DEFINE"),
    MEASURES + "PATTERN (a) DEFINE b AS x > 1": (1, 92, "the pattern has no variable b", "use it"),
    MEASURES + "PATTERN (a) DEFINE a AS x, a AS y": (1, 100, "a is defined twice", "join"),
    MEASURES + "PATTERN (a) DEFINE a AS q.x > 1": (1, 97, "the pattern has no variable q", "write"),
    MEASURES + "PATTERN (a) DEFINE a AS lag(x) > 1": (1, 97, "LAG(x) is refused in", "use columns"),
    MEASURES + "PATTERN (a) DEFINE a AS next(x) > 1": (1, 97, "unknown function next()", "docs"),
    MEASURES + "PATTERN (a) DEFINE a AS now() > ts": (1, 97, "now() is refused", "use a column"),
    MEASURES + "PATTERN (a) DEFINE a AS x > (SELECT 1)": (1, 109, "(SELECT 1) is", "use"),
    MEASURES + "PATTERN (a) DEFINE a AS prev(prev(x)) > 1": (1, 102, "PREV(x) is within", "look"),
    MEASURES + "PATTERN (a) DEFINE a AS prev(x, y) > 1": (1, 97, "prev needs a constant", "write"),
    MEASURES + "PATTERN (a) DEFINE a AS last(x, 2) > 1": (1, 97, "LAST(x, 2) has a dist", "write"),
    MEASURES + "PATTERN (a b) DEFINE a AS sum(a.x + b.x) > 1": (1, 99, "SUM(a.x + b.x) has", "wr"),
    MEASURES + "PATTERN (a b) DEFINE a AS abs(a.x - b.x) > 1": (1, 99, "abs of values", "between"),
    MEASURES + "PATTERN (a) DEFINE a AS avg(x) > 1": (1, 97, "AVG(x) is refused in", "use columns"),
    MEASURES + "PATTERN (a) DEFINE a AS first(1) = 1": (1, 97, "FIRST(1) has no col", "write the"),
    MEASURES + "PATTERN (a) DEFINE a AS x / 2 > 1": (1, 97, "/ without double", "a / b means -3"),
    MEASURES + "PATTERN (a) DEFINE a AS _cdc_x > 1": (1, 97, "_cdc_x is a column of", "use the"),
    MEASURES + "PATTERN (a) DEFINE a AS x y": (1, 97, "it cannot be parsed as an exp", "write one"),
    MEASURES + "PATTERN (a)": (1, 84, "DEFINE is expected here", "write"),
    "ORDER BY ts MEASURES classifier() AS c PATTERN (a) DEFINE a AS x": (
        1, 62, "unknown function classifier()", "docs/reference"),
    "PARTITION BY id ORDER BY ts MEASURES a.id AS ID PATTERN (a) DEFINE a AS x": (
        1, 86, "two output columns are called id", "give one"),
    "ORDER BY ts MEASURES a.id AS _cdc_x PATTERN (a) DEFINE a AS x": (
        1, 70, "_cdc_x is a name of wal2lake's own", "choose one"),
    "ORDER BY ts MEASURES a.id AS user PATTERN (a) DEFINE a AS x": (
        1, 70, "user is a reserved word", "to use it"),
    "ORDER BY ts MEASURES final last(a.id) AS i PATTERN (a) DEFINE a AS x": (
        1, 62, "it cannot be parsed as an expression", "write one"),
    "ORDER BY ts MEASURES prev(a.id) AS i PATTERN (a) DEFINE a AS x": (
        1, 62, "prev is no measure", "write first"),
}  # fmt: skip


@pytest.mark.parametrize("clauses", REFUSED)
def test_it_is_refused_at_its_place(clauses: str) -> None:
    line, column, message, remedy = REFUSED[clauses]

    found = problem(f"{FRONT}{BEGIN}{clauses})")

    assert (found.line, found.column) == (line + 4, column), str(found)
    assert found.message.startswith(message)
    assert found.remedy.startswith(remedy)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT a FROM s.t", "* is expected here, and not a"),
        ("SELECT * FROM t MATCH_RECOGNIZE (", ". is expected here, and not MATCH_RECOGNIZE"),
        ("", "SELECT is expected here, and not the end"),
        (
            f"{BEGIN}{MEASURES}PATTERN (a) DEFINE a AS x) WHERE id > 1",
            "nothing may follow the parenthesis",
        ),
        (f"{BEGIN}{MEASURES}PATTERN (a", "the pattern is not closed"),
        ("SELECT 'a", "a quote or a comment is not closed"),
    ],
)
def test_a_pattern_is_one_select_of_one_table(text: str, message: str) -> None:
    assert problem(FRONT + text).message == message


def test_what_is_wrong_in_the_front_matter_and_in_the_text_is_told_at_once() -> None:
    front = FRONT.replace("10 minutes", "soon")

    found = problems(f"{front}{BEGIN}{MEASURES}PATTERN (a) DEFINE b AS x > 1)")

    assert [(each.line, each.message[:22]) for each in found] == [
        (3, "within: write a number"),
        (5, "the pattern has no vari"[:22]),
    ]


def test_a_view_over_a_pattern_needs_it() -> None:
    fraud = definition(f"{FRONT}{BEGIN}{MEASURES}PATTERN (a) DEFINE a AS x)", "marts.fraud.sql")
    view = definition("SELECT id FROM marts.fraud", "marts.view.sql")
    other = definition("SELECT id FROM shop.pay", "marts.other.sql")
    known = {one.table: one for one in (fraud, view, other)}

    assert [beyond_sql(one, known) for one in known.values()] == [fraud, fraud, None]


TEXT = """
    SELECT * FROM s.t MATCH_RECOGNIZE ( ) PARTITION BY ORDER a , MEASURES a.b AS x ONE ROW PER MATCH
    AFTER SKIP PAST LAST FIRST TO NEXT PATTERN { 2 } | + ? DEFINE AND NOT > 1 prev( count( sum( 'q'
    CASE WHEN THEN END IS NULL IN BETWEEN ; . "Q" $1 [ ] - / :: integer INTERVAL /* -- */
"""


@settings(max_examples=60)
@given(
    st.lists(st.sampled_from(TEXT.split())),
    st.sampled_from(["", BEGIN, BEGIN + MEASURES, f"{BEGIN}{MEASURES}PATTERN (a) DEFINE a AS "]),
)
def test_no_text_makes_it_fail(words: list[str], begin: str) -> None:
    read, found = read_definition("x.sql", "a.x.sql", FRONT + begin + " ".join(words))

    assert (read is None) == bool(found)
