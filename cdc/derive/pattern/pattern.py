"""Define a pattern as data, and read it from the text of a definition."""

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass

import sqlglot
from sqlglot import Token, exp
from sqlglot.errors import SqlglotError

from cdc.derive.pattern.clauses import ClauseReader, Clauses, Item, RefusedError
from cdc.derive.pattern.conditions import TermReader
from cdc.derive.pattern.expressions import expression
from cdc.derive.pattern.matcher import Skip
from cdc.derive.pattern.measures import matches_query
from cdc.derive.pattern.nodes import variables
from cdc.derive.pattern.pattern_text import PatternError, parse
from cdc.derive.pattern.program import MOST_INSTRUCTIONS, Program, TooLargeError, compiled
from cdc.derive.pattern.running import Slot
from cdc.derive.pattern.terms import Term
from cdc.derive.sql import printing
from cdc.derive.sql.place import Reporter
from cdc.derive.sql.problem import Place, Problem
from cdc.events.names import OURS
from cdc.tables import TableId


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """Says how far a match may reach."""

    within: int | None  # microseconds from its first row to its last; None for any
    most_rows: int  # of one partition


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """Says what is sought in the rows of a table, without the measures."""

    bounds: Bounds
    partition: tuple[str, ...]
    order: tuple[str, ...]
    program: Program
    skip: Skip
    target: str
    columns: tuple[str, ...]  # what conditions need of a row, as expressions for DuckDB
    slots: tuple[Slot, ...]
    conditions: tuple[tuple[str, Term], ...]  # by variable


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPattern:
    """Holds what a definition of a pattern says."""

    table: TableId
    place: Place
    outputs: tuple[str, ...]
    pattern: Pattern
    duckdb: str  # the query over the rows and matches
    text: str  # equal for equal patterns, whatever their layout


def read_pattern(
    report: Reporter, text: str, bounds: Bounds
) -> tuple[ReadPattern | None, list[Problem]]:
    """Return the pattern of a definition's text; None if there are problems with it."""
    try:
        tokens = sqlglot.tokenize(text, read="postgres")
    except (SqlglotError, ValueError):
        remedy = "close every quote and comment"
        return None, [report.at(0, "a quote or a comment is not closed", remedy)]
    try:
        clauses = ClauseReader(report, text, list[Token](tokens)).read()
        program, names = _program(report, clauses)
    except RefusedError as error:
        return None, [error.problem]
    return _Reader(report, text, clauses, names).read(program, bounds)


def _program(report: Reporter, clauses: Clauses) -> tuple[Program, frozenset[str]]:
    try:
        pattern = parse(clauses.pattern)
        return compiled(pattern), frozenset(variables(pattern))
    except PatternError as error:
        at = clauses.pattern_at + error.at
        raise RefusedError(report.at(at, error.what, error.remedy)) from None
    except TooLargeError:
        what = f"the pattern repeats its parts to more than {MOST_INSTRUCTIONS} steps"
        remedy = "write + or {2,}, and count the rows in a condition"
        raise RefusedError(report.at(clauses.pattern_at, what, remedy)) from None


class _Reader:
    def __init__(
        self, report: Reporter, text: str, clauses: Clauses, names: Collection[str]
    ) -> None:
        self._report, self._text = report, text
        self._clauses, self._names = clauses, names
        self._problems: list[Problem] = []

    def read(self, program: Program, bounds: Bounds) -> tuple[ReadPattern | None, list[Problem]]:
        clauses = self._clauses
        terms = TermReader(self._report)
        define = self._expressions(clauses.define)
        measures = self._expressions(clauses.measures)
        for _, tree in measures:
            for node in tree.find_all(exp.Anonymous):
                remedy = "write first(...) or last(...) of a variable"
                self._problems.append(self._report.on(node, "prev is no measure", remedy))
        conditions = tuple((name, terms.read(tree, name)) for name, tree in define)
        self._problems += [*terms.problems, *self._names_wrong(), *self._outputs_wrong()]
        if self._problems:
            return None, sorted(self._problems)
        facts = (clauses.partition, clauses.order, bounds.within, bounds.most_rows, clauses.skip)
        printed = [[(name, printing.postgres(tree)) for name, tree in measures + define]]
        text = json.dumps([str(clauses.table), *facts, clauses.target, repr(program), *printed])
        pattern = Pattern(
            bounds=bounds,
            partition=clauses.partition,
            order=clauses.order,
            program=program,
            skip=clauses.skip,
            target=clauses.target,
            columns=terms.columns,
            slots=terms.slots,
            conditions=conditions,
        )
        return ReadPattern(
            table=clauses.table,
            place=clauses.place,
            outputs=(*clauses.partition, *(item.name for item in clauses.measures)),
            pattern=pattern,
            duckdb=matches_query(clauses.partition, measures),
            text=text,
        ), []

    def _expressions(self, items: Collection[Item]) -> list[tuple[str, exp.Expr]]:
        found = []
        for item in items:
            tree, problems = expression(self._report, self._text, item, self._names)
            self._problems += problems
            if tree is not None:
                found.append((item.name, tree))
        return found

    def _names_wrong(self) -> Iterator[Problem]:
        clauses, seen = self._clauses, set[str]()
        for item in clauses.define:
            if item.name not in self._names:
                what = f"the pattern has no variable {item.name}"
                yield self._report.at(item.at, what, "use it in PATTERN, or remove it")
            if item.name in seen:
                what = f"{item.name} is defined twice"
                yield self._report.at(item.at, what, "join the conditions by AND")
            seen.add(item.name)
        if clauses.target and clauses.target not in self._names:
            what = f"the pattern has no variable {clauses.target}"
            yield self._report.at(clauses.target_at, what, "skip to a variable of PATTERN")

    def _outputs_wrong(self) -> Iterator[Problem]:
        seen = {name.lower() for name in self._clauses.partition}
        for item in self._clauses.measures:
            if item.name.lower() in seen:
                what = f"two output columns are called {item.name}"
                yield self._report.at(item.at, what, "give one of them another name by AS")
            if item.name.lower().startswith(OURS):
                what = f"{item.name} is a name of wal2lake's own"
                remedy = "choose one that does not begin with _cdc_"
                yield self._report.at(item.at, what, remedy)
            seen.add(item.name.lower())
