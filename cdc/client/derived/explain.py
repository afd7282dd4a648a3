"""Explain how a derived table is kept: what a step calculates, and what the last steps took."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from cdc.client.derived.at_cut import definitions, input_at, one_of, published_row
from cdc.config import Config
from cdc.derive.definition.definition import Definition
from cdc.derive.engine.inputs import columns
from cdc.derive.scope.of_definition import definition_scope
from cdc.derive.scope.scope import Branch, Link, Scope, Whole
from cdc.derive.step.limits import Cost
from cdc.derive.step.mark import facts_of
from cdc.lake.records.ledger import LedgerRow
from cdc.lake.table.positions import open_table
from cdc.lake.upkeep.held import held

_LAST: Final = 20
_COMMITS: Final = 200
"""Commits that are looked through for the last steps; those of upkeep are among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """Says how a derived table is kept."""

    table: str
    scope: Sequence[str]  # the scope key; empty if every step calculates the whole query
    why: str  # it has no scope; empty if it has
    links: Sequence[str]  # how changes of its inputs reach its other inputs
    steps: Sequence[Cost]  # of its last commits, newest first
    time_dependent: bool = False  # its query names cut_time()
    by_events: bool = False  # it has no query: the events of its table are taken as they come

    @property
    def lines(self) -> Iterator[str]:
        """Yield the explanation as text."""
        by = f"scoped by ({', '.join(self.scope)})" if self.scope else f"whole: {self.why}"
        yield f"{self.table} is {'kept by the events of its table' if self.by_events else by}"
        if self.time_dependent:
            yield "  it depends on cut_time(): each cut calculates it, also if no row changes"
        yield from (f"  {link}" for link in self.links)
        yield from self._cost()

    def _cost(self) -> Iterator[str]:
        scoped = [step for step in self.steps if step.mode == "scoped"]
        if not self.steps:
            yield "  it has no commit yet"
            return
        seconds = median(step.seconds for step in self.steps)
        how = "" if self.by_events else f"{len(scoped)} scoped, "
        yield f"  last {len(self.steps)} commits: {how}{seconds:.2f} s (median)"
        if by_spark := sum(step.engine == "spark" for step in self.steps):
            yield f"  {by_spark} of them calculated by Spark"
        if scoped:
            changed = sum(step.changed for step in scoped)
            keys = sum(step.keys for step in scoped)
            yield f"  {changed:,} changed rows led to {keys:,} values of its scope key"
        said = "" if self.by_events else "whole: "
        yield from (f"  {said}{why}" for why in dict.fromkeys(s.why for s in self.steps if s.why))


def explain(config: Config, name: str) -> Explained:
    """Explain a derived table over its inputs at the newest cut.

    Raises CONFIG if it is not derived, or an input has no rows yet.
    """
    with held(config.lake.path):
        row = published_row(config, None)
        definition = one_of(definitions(config, row), name)
        inputs = {table: input_at(table, row).open() for table in definition.inputs}
        scope = definition_scope(
            definition, {table: columns(opened) for table, opened in inputs.items()}
        )
        steps = _steps(definition, row)
    return Explained(
        table=name,
        scope=() if isinstance(scope, Whole) else scope.columns,
        why=scope.reason if isinstance(scope, Whole) else "",
        links=() if isinstance(scope, Whole) else list(dict.fromkeys(_links(scope))),
        steps=steps,
        time_dependent=definition.is_timed,
        by_events=definition.history is not None,
    )


def _links(scope: Scope) -> Iterator[str]:
    for branch in scope.branches:
        if scope.by_row:
            yield f"each row is made of one row of {branch.occurrences[0].table}"
        for link in branch.links:
            yield _link(branch, link)


def _link(branch: Branch, link: Link) -> str:
    one, other = branch.occurrences[link.one], branch.occurrences[link.other]
    equal = " and ".join(f"{one.name}.{a} = {other.name}.{b}" for a, b in link.columns)
    if one.is_condition:
        return f"a change of {one.table} reaches the rows of {other.table} with {equal}"
    tables = " or ".join(dict.fromkeys(map(str, (one.table, other.table))))
    return f"a change of {tables} reaches the rows with {equal}"


def _steps(definition: Definition, row: LedgerRow) -> list[Cost]:
    entry = row.derived_entry(str(definition.table))
    table = None if entry is None else open_table(entry.path)
    found: dict[int, Cost] = {}
    for commit in [] if table is None else table.history(_COMMITS):
        facts = facts_of(commit)
        if facts.get("definition") == definition.hash and facts.get("cost"):
            found.setdefault(facts["cut"], Cost(**facts["cost"]))
    return list(found.values())[:_LAST]
