"""Makes the commit of one table beside the calculation of the next."""

from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from cdc.derive.step.ready import Commit, Steps, finish
from cdc.tables import TableId


@dataclass(frozen=True, slots=True)
class _Committing:
    """Holds the steps of a table that is calculated, and whose commit has begun."""

    table: TableId
    steps: Steps[None]
    commit: Commit  # waits for it


class Beside:
    """Runs the steps of one table after those of another; one thread calls it.

    Steps go on behind their commit when those of the next table wait for theirs.
    """

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, "derive-commit")
        self._last: _Committing | None = None

    def run(self, table: TableId, inputs: Collection[TableId], steps: Steps[None]) -> None:
        """Run steps up to their commit; those of a table that is among the inputs end before."""
        if self._last is not None and self._last.table in inputs:
            self.end()
        commit = next(steps, None)
        self.end()
        if commit is not None:
            self._last = _Committing(table, steps, self._pool.submit(commit).result)

    def end(self) -> None:
        """Wait for the last commit, and run what comes after it."""
        last, self._last = self._last, None
        if last is not None:
            finish(last.steps, last.commit)

    def close(self) -> None:
        """End the thread; a commit that has begun is finished first."""
        self._pool.shutdown()
