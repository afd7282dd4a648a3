"""Generate docs/reference/derived-sql.md from the allow-list of derived tables."""

from collections.abc import Iterable
from typing import Final

from cdc.derive.as_of.forms import FORMS
from cdc.derive.pattern.forms import CLAUSES, VALUES
from cdc.derive.sql import refused
from cdc.derive.sql.allowed import ENTRIES, Group

INTRODUCTION: Final = """\
# SQL of derived tables

Generated from `cdc/derive/` by `python -m cdc.cli.reference docs/reference`; a test
compares. `tests/source/derive` evaluates every line of the first part in Postgres and in DuckDB, on
NULL, NaN, the smallest and the largest values, 38 digits, times before 1970 and at the change of
clocks, and text outside ASCII, and requires equal values. Postgres has no windows of event time:
they are compared with queries that use `date_bin` and subqueries. `tests/spark/derive` requires of
Spark the same values, or that it names what it refuses.

A definition is one SELECT as Postgres spells it. Tables are written `schema.table`. A query that
Postgres itself refuses, because of its types for instance, may be accepted here: try it in psql.
Where the lake would have to answer differently because of a value's type, the table stops with the
name of the function.
"""
AS_OF: Final = """\
## Tables as they were

A captured table that has a history (`kind: history`) may be read as it was, beside inner and left
joins. A join needs an equality of its columns and an earlier table's in `ON`.

| form | remark |
|---|---|
"""
PATTERNS: Final = """\
## Patterns

A definition of `kind: pattern` is one `SELECT * FROM schema.table MATCH_RECOGNIZE (...)` with these
clauses, in this order. Its columns are those of `PARTITION BY` and the measures.

| clause | remark |
|---|---|
"""
OF_MATCHES: Final = """
These may be written in `DEFINE`, where a match reaches up to the current row, and in `MEASURES`,
where it is complete.

| value | remark |
|---|---|
"""
REFUSED: Final = """\
## Refused

Everything that is not listed above is refused, with its place. These have remedies of their own.

| form | instead |
|---|---|
"""


def derived_sql() -> str:
    """Return the page of what a definition may use, and what is refused."""
    allowed = (_allowed(group) for group in Group)
    as_of = AS_OF + _rows(FORMS)
    return "\n".join([INTRODUCTION, *allowed, as_of, _patterns(), REFUSED + _refused()])


def _patterns() -> str:
    return PATTERNS + _rows(CLAUSES) + OF_MATCHES + _rows(VALUES)


def _rows(forms: Iterable[tuple[str, str]]) -> str:
    return "".join(f"| {_code(form)} | {_cell(remark)} |\n" for form, remark in forms)


def _allowed(group: Group) -> str:
    rows = [
        f"| {_code(entry.spelling)} | {_cell(entry.note)} |\n"
        for entry in ENTRIES
        if entry.group is group
    ]
    return f"## {group.value}\n\n| form | remark |\n|---|---|\n" + "".join(rows)


def _refused() -> str:
    words = {word.upper(): remedy for word, remedy in refused.WORDS.items()}
    functions = {f"{name}()": remedy for name, remedy in refused.FUNCTIONS.items()}
    every = {**refused.SHOWN, **words, **functions}
    return "".join(f"| {_code(form)} | {_cell(remedy)} |\n" for form, remedy in every.items())


def _code(text: str) -> str:
    return f"`{_cell(text)}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
