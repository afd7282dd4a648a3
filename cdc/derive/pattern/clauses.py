"""Take the text of a pattern's definition apart into its clauses.

sqlglot parses MATCH_RECOGNIZE in other dialects than Postgres's only. So the clauses are found by
their words, and each expression in them is parsed for itself.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from sqlglot import Token, TokenType, exp

from cdc.derive.pattern.matcher import Skip
from cdc.derive.sql.place import Reporter
from cdc.derive.sql.problem import Place, Problem
from cdc.source.predicate.parse import RESERVED, folded_name
from cdc.tables import TableId

FORM: Final = (
    "write SELECT * FROM schema.table MATCH_RECOGNIZE (PARTITION BY a ORDER BY ts MEASURES x AS y "
    "ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW PATTERN (A B) DEFINE A AS ...)"
)
_CLAUSES: Final = (
    ("partition by",),
    ("order by",),
    ("measures",),
    ("one", "row"),
    ("all", "rows"),
    ("after", "match"),
    ("pattern", "("),
    ("subset",),
    ("define",),
)
_QUOTED: Final = frozenset({TokenType.IDENTIFIER, TokenType.STRING})
_COLUMN: Final = "name a column of the table"


class RefusedError(Exception):
    """Reports that a definition is refused, with the problem."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


@dataclass(frozen=True, slots=True)
class Item:
    """Holds an expression with the name that it has or defines."""

    name: str
    at: int  # offset of the name
    tokens: tuple[Token, ...]  # of the expression


@dataclass(frozen=True, slots=True, kw_only=True)
class Clauses:
    """Holds what is written in each clause; offsets are those of the file's text."""

    table: TableId
    place: Place  # of the table's name
    partition: tuple[str, ...]
    order: tuple[str, ...]
    measures: tuple[Item, ...]
    skip: Skip
    target: str
    target_at: int
    pattern: str
    pattern_at: int
    define: tuple[Item, ...]


class ClauseReader:
    """Reads the clauses from first to last; raises RefusedError for the first problem."""

    def __init__(self, report: Reporter, text: str, tokens: list[Token]) -> None:
        self._report, self._text, self._tokens = report, text, tokens
        self._i = 0

    def read(self) -> Clauses:
        """Return the clauses of the whole text."""
        self._expect("select", "*", "from")
        place = self._report.place(self._offset)
        schema = self._name("name a table, as schema.table")
        self._expect(".")
        table = TableId(schema, self._name("name a table, as schema.table"))
        self._expect("match_recognize", "(")
        partition = self._columns() if self._takes("partition by") else ()
        self._expect("order by")
        order = self._columns(ordered=True)
        self._expect("measures")
        measures = tuple(self._measure(item) for item in self._items())
        if self._takes("one", "row"):
            self._expect("per", "match")
        skip, target, target_at = self._skip()
        self._expect("pattern", "(")
        pattern_at, pattern = self._pattern()
        self._expect("define")
        define = tuple(self._definition(item) for item in self._items())
        self._expect(")")
        self._takes(";")
        if self._i < len(self._tokens):
            self._refuse("nothing may follow the parenthesis", "derive a table over this one")
        return Clauses(
            table=table,
            place=place,
            partition=partition,
            order=order,
            measures=measures,
            skip=skip,
            target=target,
            target_at=target_at,
            pattern=pattern,
            pattern_at=pattern_at,
            define=define,
        )

    def _skip(self) -> tuple[Skip, str, int]:
        if not self._takes("after", "match"):
            return Skip.PAST_LAST_ROW, "", self._offset
        self._expect("skip")
        if self._takes("past", "last", "row"):
            return Skip.PAST_LAST_ROW, "", self._offset
        self._expect("to")
        if self._takes("next", "row"):
            return Skip.TO_NEXT_ROW, "", self._offset
        skip = Skip.TO_FIRST if self._takes("first") else Skip.TO_LAST
        if skip is Skip.TO_LAST:
            self._expect("last")
        at = self._offset
        return skip, self._name("name a variable of the pattern"), at

    def _pattern(self) -> tuple[int, str]:
        """Return the text up to the parenthesis that closes the pattern, and its offset."""
        begin, depth = self._tokens[self._i - 1].end + 1, 1
        while self._i < len(self._tokens):
            token = self._tokens[self._i]
            depth += (token.text == "(") - (token.text == ")")
            self._i += 1
            if not depth:
                return begin, self._text[begin : token.start]
        raise self._refusal("the pattern is not closed", "add )")

    def _columns(self, *, ordered: bool = False) -> tuple[str, ...]:
        names = []
        while True:
            names.append(self._name(_COLUMN))
            if ordered:
                self._takes("asc")
            if self._is("desc") or self._is("nulls"):
                self._refuse(f"{self._word.upper()} is refused here", "order by ascending columns")
            if not self._takes(","):
                return tuple(names)

    def _items(self) -> Iterator[tuple[Token, ...]]:
        """Yield the tokens between the commas of a clause, up to the next clause."""
        tokens: list[Token] = []
        depth = 0
        while self._i < len(self._tokens) and (depth or not self._ends()):
            token = self._tokens[self._i]
            self._i += 1
            if token.text == "," and not depth:
                yield tuple(tokens)
                tokens = []
                continue
            depth += (token.text in {"(", "["}) - (token.text in {")", "]"})
            tokens.append(token)
        yield tuple(tokens)

    def _ends(self) -> bool:
        after_dot = self._i > 0 and self._tokens[self._i - 1].text == "."
        return self._is(")") or (not after_dot and any(self._is(*words) for words in _CLAUSES))

    def _measure(self, tokens: tuple[Token, ...]) -> Item:
        if len(tokens) < len(("x", "as", "name")) or tokens[-2].text.lower() != "as":
            at = tokens[0].start if tokens else self._offset
            raise RefusedError(self._report.at(at, "a measure has no name", "write x AS name"))
        return Item(self._named(tokens[-1]), tokens[-1].start, tokens[:-2])

    def _definition(self, tokens: tuple[Token, ...]) -> Item:
        if len(tokens) < len(("name", "as", "x")) or tokens[1].text.lower() != "as":
            at = tokens[0].start if tokens else self._offset
            remedy = "write DEFINE A AS condition, B AS condition"
            raise RefusedError(self._report.at(at, "a variable has no condition", remedy))
        return Item(self._named(tokens[0]), tokens[0].start, tokens[2:])

    def _name(self, remedy: str) -> str:
        if self._i == len(self._tokens) or not _is_name(self._tokens[self._i]):
            self._refuse(f"{self._shown} is no name", remedy)
        self._i += 1
        return self._named(self._tokens[self._i - 1])

    def _named(self, token: Token) -> str:
        if not _is_name(token):
            what = f"{token.text} is no name"
            raise RefusedError(self._report.at(token.start, what, "write a name"))
        quoted = token.token_type is TokenType.IDENTIFIER
        name = folded_name(exp.to_identifier(token.text, quoted=quoted))
        if name in RESERVED and not quoted:
            what, remedy = f"{name} is a reserved word", f'to use it as a name, quote it: "{name}"'
            raise RefusedError(self._report.at(token.start, what, remedy))
        return name

    def _takes(self, *words: str) -> bool:
        if not self._is(*words):
            return False
        self._i += len(words)
        return True

    def _expect(self, *words: str) -> None:
        for word in words:
            if not self._takes(word):
                what = f"{word.upper()} is expected here, and not {self._shown}"
                self._refuse(what, FORM)

    def _is(self, *words: str) -> bool:
        found = self._tokens[self._i : self._i + len(words)]
        return [_word(token) for token in found] == list(words)

    def _refuse(self, message: str, remedy: str) -> None:
        raise self._refusal(message, remedy)

    def _refusal(self, message: str, remedy: str) -> RefusedError:
        return RefusedError(self._report.at(self._offset, message, remedy))

    @property
    def _word(self) -> str:
        return _word(self._tokens[self._i])

    @property
    def _shown(self) -> str:
        return self._tokens[self._i].text if self._i < len(self._tokens) else "the end"

    @property
    def _offset(self) -> int:
        i = min(self._i, len(self._tokens) - 1)
        return self._tokens[i].start if self._tokens else 0


def _word(token: Token) -> str:
    """Return a token's text as one word: sqlglot has one token for PARTITION BY."""
    return "" if token.token_type in _QUOTED else " ".join(token.text.lower().split())


def _is_name(token: Token) -> bool:
    if token.token_type is TokenType.IDENTIFIER:
        return True
    word = _word(token)
    return word.replace("_", "a").isalnum() and not word[:1].isdigit()
