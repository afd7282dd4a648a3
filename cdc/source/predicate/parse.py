"""Parse a predicate's text into a tree, and report errors with their place in the text."""

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
    "integers; combine the comparisons with AND, OR, NOT and parentheses"
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
"""Reserved words of Postgres, which must be quoted to be used as column names."""
_PLAIN: Final = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_")
_CALLS: Final = "calls a function"
_REFUSED: Final[list[tuple[type[exp.Expr], str]]] = [
    (exp.Query, "has a subquery"),
    (exp.Subquery, "has a subquery"),
    (exp.Exists, "has a subquery"),
    (exp.Parameter, "has a parameter"),
    (exp.Placeholder, "has a parameter"),
    (exp.SessionParameter, "has a parameter"),
    (exp.Cast, "casts something other than a constant"),
    (exp.Case, "has a CASE"),
    (exp.Star, "has a *"),
    (exp.Binary, "has an operator that may mean something else in Spark"),
    (exp.Func, _CALLS),
]


class PredicateError(Exception):
    """Says what is wrong with a predicate.

    ``what`` completes the sentence "the predicate ...", and ``start`` is the offset in its text.
    """

    def __init__(self, what: str, node: exp.Expr | None = None, remedy: str = ALLOWED) -> None:
        super().__init__(what)
        self.what = what
        self.start = None if node is None else _start(node)
        self.remedy = remedy

    def as_error(self, text: str) -> CdcError:
        """Return a CONFIG error with the line and column in the predicate's text."""
        where = "" if self.start is None else f"at {place(text, self.start)}"
        return CdcError(
            ErrorKind.CONFIG,
            f"the predicate {self.what}",
            detail=where,
            remedy=self.remedy,
        )


def parse_condition(text: str) -> exp.Expr:
    """Parse the text as one expression; raise PredicateError if it is anything else."""
    if len(text) > LONGEST:
        raise PredicateError(f"is longer than {LONGEST} characters")
    if "\0" in text or re.search("[\ud800-\udfff]", text):
        raise PredicateError("has a character that text in Postgres cannot have")
    try:
        _refuse_hidden(text)
        return sqlglot.parse_one(text, read=_DIALECT, into=exp.Condition)
    except ParseError as error:
        raise _unreadable(error) from None
    except SqlglotError:
        raise PredicateError(
            "cannot be parsed as SQL: a quote or a comment is not closed"
        ) from None


def place(text: str, start: int) -> str:
    """Return the line and the column of an offset, both counted from 1, as ``line:column``."""
    before = text[:start]
    return f"{before.count(chr(10)) + 1}:{start - before.rfind(chr(10))}"


def only(node: exp.Expr, *names: str) -> None:
    """Raise PredicateError if the node has arguments other than ``names``, which nobody reads."""
    if any(value for name, value in node.args.items() if name not in names):
        raise not_understood(node)


def not_understood(node: exp.Expr) -> PredicateError:
    """Return the error for a node that a predicate may not have."""
    if isinstance(node, exp.Null):
        return PredicateError(
            "compares with NULL, which is never true", node, "write IS NULL or IS NOT NULL"
        )
    what = next((what for kind, what in _REFUSED if isinstance(node, kind)), "")
    if what == _CALLS:
        what = f"{what}: {_function(node)}"
    return PredicateError(what or f"has something that is not allowed: {node.key.upper()}", node)


def _function(node: exp.Expr) -> str:
    if isinstance(node, exp.Func) and not isinstance(node, exp.Anonymous):
        return node.sql_name().lower()
    return node.name.lower()


def folded_name(name: exp.Identifier) -> str:
    """Return the name as Postgres reads it: in lower case unless it is quoted."""
    text = str(name.this)
    if name.args.get("quoted"):
        return text
    if text.isascii():
        return text.lower()
    return "".join(sign.lower() if sign.isascii() else sign for sign in text)


def quoted_name(name: str) -> str:
    """Return the name as it must be written in a predicate: quoted if necessary."""
    plain = _PLAIN.issuperset(name) and not name[:1].isdigit() and name not in RESERVED
    return name if plain and _reads_as_name(name) else column_name(name, "").source


def refuse_word(name: exp.Identifier) -> None:
    """Raise PredicateError for an unquoted reserved word."""
    if not name.args.get("quoted") and folded_name(name) in RESERVED:
        raise PredicateError(
            f"has {folded_name(name)}, which is a reserved word",
            name,
            f'to name a column, quote it: "{folded_name(name)}"',
        )


def no_column(name: exp.Identifier, table: TableId, known: Collection[str]) -> PredicateError:
    """Return the error for an unknown column, with a remedy that suggests a similar one."""
    wanted = folded_name(name)
    same = [column for column in known if column.lower() == wanted.lower()]
    near = same or get_close_matches(wanted, known, n=1)
    remedy = f"did you mean {quoted_name(near[0])}?" if near else f"use one of: {', '.join(known)}"
    return PredicateError(f"names an unknown column of {table}: {wanted}", name, remedy)


def _reads_as_name(name: str) -> bool:
    try:
        tree = sqlglot.parse_one(f"{name} = 1", read=_DIALECT, into=exp.Condition)
    except SqlglotError:
        return False
    return isinstance(tree.this, exp.Column) and str(tree.this.name) == name


def _refuse_hidden(text: str) -> None:
    """Refuse what the tree would not show: empty text, comments, a second statement."""
    tokens = sqlglot.tokenize(text, read=_DIALECT)
    if not tokens:
        raise PredicateError("is empty")
    for token in tokens:
        if token.comments:
            raise PredicateError("has a comment", remedy="remove it")
        if token.token_type is TokenType.SEMICOLON:
            raise PredicateError("has a semicolon", remedy="give one condition and nothing else")


def _start(node: exp.Expr) -> int | None:
    """Return the lowest known offset in the text of the node and its descendants."""
    starts = (part.meta.get("start") for part in node.walk())
    return min((start for start in starts if isinstance(start, int)), default=None)


def _unreadable(error: ParseError) -> PredicateError:
    first = error.errors[0] if error.errors else {}
    near = first.get("highlight") or ""
    return PredicateError(f"cannot be parsed as SQL{f' near {near!r}' if near else ''}")
