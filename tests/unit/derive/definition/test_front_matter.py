"""The front matter is YAML in the first comment, with errors at their lines."""

import pytest

from tests.unit.derive.definition.reading import definition, problem, problems

QUERY = "SELECT o.country, count(*) AS n\nFROM shop.orders AS o GROUP BY o.country\n"


def test_every_key_is_read() -> None:
    text = "/* ---\ndoc: By country.\nrefresh: full\nkey: [country, n]\n--- */\n" + QUERY

    read = definition(text)

    assert (read.doc, read.refresh, read.key) == ("By country.", "full", ("country", "n"))


@pytest.mark.parametrize("before", ["", "/* a comment */\n", "-- one line\n", "/* ---\n--- */\n"])
def test_it_may_be_left_out(before: str) -> None:
    read = definition(before + QUERY)

    assert (read.doc, read.refresh, read.key) == ("", "incremental", ("country",))


@pytest.mark.parametrize(
    ("matter", "place", "message", "remedy"),
    [
        ("dok: x", "2:1", "unknown key dok", "did you mean doc?"),
        ("doc: x\nzzz: 1", "3:1", "unknown key zzz", "keys are doc, refresh, key"),
        ("kind: fold", "2:1", "kind: input should be 'view', 'pattern'", "correct"),
        ("within: 1 day", "2:1", "within is a key of patterns only", "remove it, or"),
        ("doc: x\nmax_partition_rows: 3", "3:1", "max_partition_rows is a key of", "remove it"),
        ("within: 1 month", "2:1", "within: write a number of seconds, minutes, hours", "correct"),
        ("max_partition_rows: 0", "2:1", "max_partition_rows: input should be greater", "correct"),
        (
            "changes: true",
            "2:1",
            "changes needs no key",
            "read the changes of any table with wal2lake changes, or cdc.changes",
        ),
        ("doc: a\ndoc: b", "3:1", "doc is given twice", "keep one"),
        ("- doc", "2:1", "the front matter has no keys", "write keys"),
        ("doc: [", "3:1", "the front matter is not YAML", "indent"),
        ("doc: 1", "2:1", "doc: input should be a valid string", "correct"),
        ("refresh: often", "2:1", "refresh: input should be 'incremental'", "correct"),
        ("key: []", "2:1", "key: list should have at least 1 item", "correct"),
    ],
)
def test_an_error_has_its_line(matter: str, place: str, message: str, remedy: str) -> None:
    found = problem(f"/* ---\n{matter}\n--- */\n{QUERY}")

    assert str(found).startswith(f"marts.sales.sql:{place}: {message}")
    assert found.remedy.startswith(remedy)


def test_it_has_to_end() -> None:
    found = problem(f"/* --- doc: x */\n{QUERY}")

    assert str(found) == "marts.sales.sql:1:1: the front matter is not closed"


def test_a_key_is_made_of_output_columns() -> None:
    text = f"/* ---\nkey: [land, n, n]\n--- */\n{QUERY}"

    assert [each.message for each in problems(text)] == [
        "key: a column is given twice",
        "key: land is no output column",
    ]
