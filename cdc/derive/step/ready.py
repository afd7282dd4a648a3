"""Defines a step that is calculated, and the commit that it still needs.

Another thread may make the commit, while this one calculates the next table.
"""

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TypeVar

from deltalake import DeltaTable

from cdc.derive.step.difference import Difference
from cdc.derive.step.limits import Cost
from cdc.derive.step.mark import Mark
from cdc.derive.step.whole_query import WholeQuery

T = TypeVar("T")
Commit = Callable[[], int]
"""Commits to a table and returns its version; any thread may call it."""
Steps = Generator[Commit, int, T]
"""Work that asks for commits, is sent the version of each or thrown its error, and returns a T."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """Says what a step did; the table has its rows at ``version``."""

    version: int
    rows: int
    added: int
    removed: int
    cost: Cost


@dataclass(frozen=True, slots=True)
class Calculated:
    """Holds a whole query, and how its rows differ from what the table has of it.

    ``stored`` is None if the table has nothing of it.
    """

    mark: Mark
    stored: DeltaTable | None
    found: Difference
    whole: WholeQuery


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """Says what a step is to commit; ``stored`` is None where the table is made anew."""

    mark: Mark
    stored: DeltaTable | None
    found: Difference
    cost: Cost
    is_kept: bool = False  # the table's stored rows are, from cut to cut

    @property
    def is_needed(self) -> bool:
        """Return whether there is anything to commit."""
        return self.stored is None or len(self.found.changes) > 0

    def done(self, version: int) -> Step:
        """Return the step, after which the table has this version."""
        return Step(
            version=version,
            rows=self.found.rows,
            added=self.found.added,
            removed=self.found.removed,
            cost=self.cost,
        )


def finish(steps: Steps[T], commit: Commit | None = None) -> T:
    """Run steps to their end, and the commits that they ask for, in this thread.

    ``commit`` is the one that they wait for, if they have begun.
    """
    try:
        asked = next(steps) if commit is None else _answered(steps, commit)
        while True:
            asked = _answered(steps, asked)
    except StopIteration as ended:
        found: T = ended.value
        return found


def _answered(steps: Steps[T], commit: Commit) -> Commit:
    """Make a commit, tell the steps its version or its error, and return the next commit."""
    try:
        version = commit()
    except Exception as error:  # noqa: BLE001 - they decide what it means
        return steps.throw(error)
    return steps.send(version)
