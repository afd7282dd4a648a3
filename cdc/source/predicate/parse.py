"""The tree of a predicate's text, and errors that name their place in it."""

import re
from collections.abc import Collection
from difflib import get_close_matches
from typing import Final

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.errors import ParseError, SqlglotError

from cdc.errors import CdcError, ErrorKind
from cdc.source.predicate.texts import column_name
from cdc.tables import TableId

ALLOWED: Final = (
    "compare columns with constants: = <> < <= > >=, IN, BETWEEN, LIKE, IS NULL, id % 10 = 3 for "
    "integers; join the comparisons by AND, OR, NOT and parentheses"
)
LONGEST: Final = 100_000
_DIALECT: Final = "postgres"
_WORDS: Final = """
    all analyse analyze and any array as asc asymmetric authorization binary both case cast check
    collate collation column concurrently constraint create cross current_catalog current_date
    current_role current_schema current_time current_timestamp current_user default deferrable
    desc distinct do else end except false fetch for foreign freeze from full grant group having
    ilike in initially inner intersect into is isnull join lateral leading left like limit
    localtime localtimestamp natural not notnull null offset on only or order outer overlaps
    placing primary references returning right select session_user similar some symmetric
    system_user table tablesample then to trailing true union unique user using variadic verbose
    when where window with
"""
RESERVED: Final = frozenset(_WORDS.split())
"""Words that are no column's name in Postgres unless they are quoted."""
_PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_")
_CALLS: Final = "calls a function"
_SAID: Final[list[tuple[type[exp.Expr], str]]] = [
    (exp.Query, "has a query inside"),
    (exp.Subquery, "has a query inside"),
    (exp.Exists, "has a query inside"),
    (exp.Parameter, "has a parameter"),
    (exp.Placeholder, "has a parameter"),
    (exp.SessionParameter, "has a parameter"),
    (exp.Cast, "casts something else than a constant"),
    (exp.Case, "has a CASE"),
    (exp.Star, "has a *"),
    (exp.Binary, "has an operator that is not known to mean the same in Spark"),
    (exp.Func, _CALLS),
]


class PredicateError(Exception):
    """What is wrong, as the end of a sentence about the predicate, and where."""

    def __init__(self, what: str, node: exp.Expr | None = None, remedy: str = ALLOWED) -> None:
        super().__init__(what)
        self.what = what
        self.start = None if node is None else _start(node)
        self.remedy = remedy

    def told(self, text: str) -> CdcError:
        """For the operator, with line and column of the predicate's text."""
        where = "" if self.start is None else f"at {place(text, self.start)}"
        return CdcError(
            ErrorKind.CONFIG,
            f"the predicate {self.what}",
            detail=where,
            remedy=self.remedy,
        )


def parsed(text: str) -> exp.Expr:
    """The one expression that the text is; raises PredicateError for anything else."""
    if len(text) > LONGEST:
        raise PredicateError(f"is longer than {LONGEST} characters")
    if "\0" in text or re.search("[\ud800-\udfff]", text):
        raise PredicateError("has a character that no text of Postgres has")
    try:
        _refuse_hidden(text)
        return sqlglot.parse_one(text, read=_DIALECT, into=exp.Condition)
    except ParseError as error:
        raise _unreadable(error) from None
    except SqlglotError:
        raise PredicateError("cannot be read as SQL: a quote or a comment does not end") from None


def place(text: str, start: int) -> str:
    """Line and column, both from 1."""
    before = text[:start]
    return f"{before.count(chr(10)) + 1}:{start - before.rfind(chr(10))}"


def only(node: exp.Expr, *names: str) -> None:
    """Refuse a node that says more than the reader of it looks at."""
    if any(value for name, value in node.args.items() if name not in names):
        raise not_understood(node)


def not_understood(node: exp.Expr) -> PredicateError:
    if isinstance(node, exp.Null):
        return PredicateError(
            "compares with NULL, which is never true", node, "write IS NULL or IS NOT NULL"
        )
    said = next((said for kind, said in _SAID if isinstance(node, kind)), "")
    if said == _CALLS:
        said = f"{said}: {_function(node)}"
    return PredicateError(said or f"has something that is not allowed: {node.key.upper()}", node)


def _function(node: exp.Expr) -> str:
    if isinstance(node, exp.Func) and not isinstance(node, exp.Anonymous):
        return node.sql_name().lower()
    return node.name.lower()


def folded(name: exp.Identifier) -> str:
    """The name as Postgres reads it: in lower case unless it is quoted."""
    found = str(name.this)
    if name.args.get("quoted"):
        return found
    return "".join(sign.lower() if sign.isascii() else sign for sign in found)


def typed(name: str) -> str:
    """The name as an operator has to write it."""
    plain = _PLAIN.issuperset(name) and not name[:1].isdigit() and name not in RESERVED
    return name if plain and _reads_as_name(name) else column_name(name, "").source


def refuse_word(name: exp.Identifier) -> None:
    if not name.args.get("quoted") and folded(name) in RESERVED:
        raise PredicateError(
            f"has {folded(name)}, which is a word of SQL",
            name,
            f'the column of that name is "{folded(name)}"',
        )


def no_column(name: exp.Identifier, table: TableId, known: Collection[str]) -> PredicateError:
    asked = folded(name)
    same = [each for each in known if each.lower() == asked.lower()]
    near = same or get_close_matches(asked, known, n=1)
    remedy = f"did you mean {typed(near[0])}?" if near else f"its columns: {', '.join(known)}"
    return PredicateError(f"names no column of {table}: {asked}", name, remedy)


def _reads_as_name(name: str) -> bool:
    try:
        found = sqlglot.parse_one(f"{name} = 1", read=_DIALECT, into=exp.Condition)
    except SqlglotError:
        return False
    return isinstance(found.this, exp.Column) and str(found.this.name) == name


def _refuse_hidden(text: str) -> None:
    """What the tree would not show: nothing at all, comments, a second statement."""
    tokens = sqlglot.tokenize(text, read=_DIALECT)
    if not tokens:
        raise PredicateError("is empty")
    for token in tokens:
        if token.comments:
            raise PredicateError("has a comment", remedy="leave it out")
        if token.token_type is TokenType.SEMICOLON:
            raise PredicateError("has a semicolon", remedy="give one condition and nothing else")


def _start(node: exp.Expr) -> int | None:
    """Where the first word of the node that has a place stands in the text."""
    starts = (each.meta.get("start") for each in node.walk())
    return min((start for start in starts if isinstance(start, int)), default=None)


def _unreadable(error: ParseError) -> PredicateError:
    found = error.errors[0] if error.errors else {}
    near = found.get("highlight") or ""
    what = f"cannot be read as SQL near {near!r}" if near else "cannot be read as SQL"
    return PredicateError(what)
