"""Check the words of a definition: functions and reserved words, each at its exact place."""

from collections.abc import Collection, Iterator, Sequence
from difflib import get_close_matches
from itertools import pairwise
from typing import Final

from sqlglot import Token, TokenType

from cdc.derive.sql import allowed, refused
from cdc.derive.sql.place import Reporter
from cdc.derive.sql.problem import Problem

_STRUCTURE: Final = frozenset(
    {
        "all", "and", "as", "between", "by", "case", "char", "character", "decimal", "distinct",
        "else", "except", "exists", "filter", "from", "having", "in", "intersect", "is", "join",
        "like", "materialized", "not", "numeric", "on", "or", "over", "select", "then", "time",
        "timestamp", "timestamptz", "union", "using", "values", "varchar", "varying", "when",
        "where", "with",
    }
)  # fmt: skip
"""Words that may be written before a parenthesis without being a function."""
_NAMING: Final = frozenset({"as", "with"})
_AS: Final = "write AS name after each column of the SELECT"
_MOST: Final = {"position": 1, "mod": 2, "btrim": 2, "ltrim": 2, "rtrim": 2, "lpad": 3, "rpad": 3}
"""How many arguments a function has; the tree does not show that there were more."""
_NESTED: Final = {
    TokenType.L_PAREN: 1,
    TokenType.L_BRACKET: 1,
    TokenType.R_PAREN: -1,
    TokenType.R_BRACKET: -1,
}
_BEFORE_STAR: Final = frozenset(
    {TokenType.SELECT, TokenType.DISTINCT, TokenType.COMMA, TokenType.DOT}
)


def word_problems(
    report: Reporter, tokens: Sequence[Token], more: Collection[str] = ()
) -> list[Problem]:
    """Return the problems that single words show; ``more`` functions are known."""
    calls = _calls(report, tokens, allowed.FUNCTIONS.union(more))
    problems = [*calls, *_words(report, tokens), *_stars(report, tokens), *_longer(report, tokens)]
    return sorted(set(problems))


def _calls(
    report: Reporter, tokens: Sequence[Token], functions: Collection[str]
) -> Iterator[Problem]:
    named: set[int] = set()  # by WITH and AS
    for token, following in pairwise(tokens):
        if token.text.lower() in _NAMING:
            named.add(following.start)
        if following.token_type is not TokenType.L_PAREN or not _is_word(token):
            continue
        if token.start in named and token.text.lower() not in _STRUCTURE:
            yield report.at(token.start, "names of columns are refused here", _AS)
            continue
        name = token.text.lower()
        if name in refused.FUNCTIONS:
            yield report.at(token.start, f"{name}() is refused", refused.FUNCTIONS[name])
        elif name not in {*functions, *_STRUCTURE, *refused.WORDS}:
            yield report.at(token.start, f"unknown function {name}()", _nearest(name))


def _longer(report: Reporter, tokens: Sequence[Token]) -> Iterator[Problem]:
    for place, (token, following) in enumerate(pairwise(tokens)):
        name = token.text.lower()
        called = following.token_type is TokenType.L_PAREN and _is_word(token)
        if called and name in _MOST and _arguments(tokens[place + 1 :]) > _MOST[name]:
            what = f"this form of {name}() is refused"
            yield report.at(token.start, what, "docs/reference/derived-sql.md shows its form")


def _arguments(tokens: Sequence[Token]) -> int:
    """Return how many arguments are in the parentheses that the tokens begin with."""
    depth, found = 0, 1
    for token in tokens:
        depth += _NESTED.get(token.token_type, 0)
        if depth == 0:
            break
        found += depth == 1 and token.token_type is TokenType.COMMA
    return found


def _nearest(name: str) -> str:
    near = get_close_matches(name, allowed.FUNCTIONS, n=1)
    listed = "docs/reference/derived-sql.md lists what may be used"
    return f"did you mean {near[0]}()? {listed}" if near else listed


def _words(report: Reporter, tokens: Sequence[Token]) -> Iterator[Problem]:
    before, after = [None, *tokens], [*tokens[1:], None]
    for previous, token, following in zip(before, tokens, after, strict=False):
        word = token.text.lower()
        qualified = previous is not None and previous.token_type is TokenType.DOT
        if not _is_word(token) or qualified or _names_collation(token, following):
            continue
        if word in refused.WORDS:
            yield report.at(token.start, f"{word.upper()} is refused", refused.WORDS[word])
        elif word == "recursive" and previous is not None and previous.text.lower() == "with":
            yield report.at(token.start, "WITH RECURSIVE is refused", refused.RECURSIVE)


def _names_collation(token: Token, following: Token | None) -> bool:
    """Return whether a collation is named, whose place and name the tree shows."""
    named = following is not None and following.token_type is TokenType.IDENTIFIER
    return named and token.text.lower() == "collate"


def _stars(report: Reporter, tokens: Sequence[Token]) -> Iterator[Problem]:
    for previous, token in pairwise(tokens):
        if token.token_type is TokenType.STAR and previous.token_type in _BEFORE_STAR:
            yield report.at(token.start, "SELECT * is refused", refused.STAR)


def _is_word(token: Token) -> bool:
    quoted = token.token_type in {TokenType.IDENTIFIER, TokenType.STRING}
    return not quoted and token.text.replace("_", "a").isalnum() and not token.text[0].isdigit()
