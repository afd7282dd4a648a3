"""Parse a definition's text into its one SELECT."""

from sqlglot import Dialect, Token, TokenType, exp
from sqlglot.errors import ParseError, SqlglotError

from cdc.derive.sql.cut_time import read_cut_time
from cdc.derive.sql.event_window_reading import read_event_windows
from cdc.derive.sql.place import Reporter
from cdc.derive.sql.problem import Problem
from cdc.derive.sql.words import word_problems

_DIALECT = Dialect.get_or_raise("postgres")
LONGEST = 100_000
_ONE = "a file holds one SELECT, and nothing else"


def statement(report: Reporter, text: str) -> tuple[exp.Query | None, list[Problem]]:
    """Return the SELECT of the text; None if there are problems with it."""
    if len(text) > LONGEST:
        return None, [report.at(0, f"it is longer than {LONGEST} characters", "split the table")]
    if "\0" in text:
        return None, [report.at(text.index("\0"), "it has a zero byte", "remove it")]
    try:
        tokens = list(_DIALECT.tokenize(text))
    except (SqlglotError, ValueError):
        remedy = "close every quote and comment"
        return None, [report.at(0, "a quote or a comment is not closed", remedy)]
    problems = _several(report, tokens) or word_problems(report, tokens)
    return (None, problems) if problems else _parsed(report, text, tokens)


def _several(report: Reporter, tokens: list[Token]) -> list[Problem]:
    ends = [i for i, token in enumerate(tokens) if token.token_type is TokenType.SEMICOLON]
    if not tokens or ends == [0]:
        return [report.at(0, "the file has no SELECT", _ONE)]
    if ends and ends[0] < len(tokens) - 1:
        return [report.at(tokens[ends[0] + 1].start, "a second statement begins here", _ONE)]
    if tokens[0].token_type not in {TokenType.SELECT, TokenType.WITH, TokenType.L_PAREN}:
        return [report.at(tokens[0].start, f"{tokens[0].text} is no SELECT", _ONE)]
    return []


def _parsed(
    report: Reporter, text: str, tokens: list[Token]
) -> tuple[exp.Query | None, list[Problem]]:
    try:
        tree = _DIALECT.parser().parse(tokens, text)[0]
    except ParseError as error:
        return None, [_unreadable(report, error)]
    except (SqlglotError, RecursionError, ValueError):
        return None, [report.at(0, "it cannot be parsed as SQL", "simplify it")]
    if not isinstance(tree, exp.Select | exp.SetOperation):
        return None, [report.at(0, "it is no SELECT", _ONE)]
    calls = list(tree.find_all(exp.Anonymous))
    problems = [*read_event_windows(report, calls), *read_cut_time(report, calls)]
    return (None, problems) if problems else (tree, [])


def _unreadable(report: Reporter, error: ParseError) -> Problem:
    first = error.errors[0] if error.errors else {}
    near = str(first.get("highlight") or "")
    line = first.get("line") or 1
    column = max(1, (first.get("col") or 1) - max(len(near), 1) + 1)
    what = f"it cannot be parsed as SQL{f' near {near}' if near else ''}"
    return Problem(report.file, line, column, what, "correct it: try it in psql")
