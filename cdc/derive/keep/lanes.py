"""Calculates derived tables in lanes beside each other, each with its own copies of the inputs."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field

from cdc.derive.definition.definition import Definition
from cdc.derive.keep.beside import Beside
from cdc.derive.keep.table_steps import TableSteps
from cdc.derive.log.topic_rows import Recent
from cdc.derive.step.ready import Steps
from cdc.derive.step.shared import Shared
from cdc.tables import TableId

Bring = Callable[[Definition], Steps[None]]
MakeSteps = Callable[[Sequence[Definition], int, Shared], TableSteps]
"""Makes what takes the steps of the definitions in one of so many lanes."""


@dataclass(slots=True)
class _Lane:
    definitions: Sequence[Definition]
    steps: TableSteps
    beside: Beside = field(default_factory=Beside)

    def run(self, bring: Bring) -> None:
        """Bring its tables one after the other; each is committed beside the next."""
        try:
            for definition in self.definitions:
                self.beside.run(definition.table, definition.inputs, bring(definition))
        finally:
            self.beside.end()

    def close(self) -> None:
        self.beside.close()
        self.steps.close()


class Lanes:
    """Has the lanes of a running job; one thread calls it.

    Where a lane's share of the memory is too small for its tables, one lane has all of it from the
    next cut on.
    """

    def __init__(self, definitions: Sequence[Definition], most: int, make: MakeSteps) -> None:
        self._definitions, self._make = definitions, make
        self._shared = Shared()
        self._pool = ThreadPoolExecutor(max(1, most - 1), "derive-lane")
        self._open(shared_out(definitions, most))

    def of(self, table: TableId) -> TableSteps:
        """Return what takes the steps of a table."""
        return self._lane_of[table].steps

    def run(self, bring: Bring, recent: Recent | None, *, in_turn: bool) -> None:
        """Bring all tables to a cut, the lanes beside each other or in turn.

        ``recent`` are the rows of the log that are in memory.
        """
        if len(self._lanes) > 1 and any(lane.steps.is_short for lane in self._lanes):
            self._close_lanes()
            self._open([self._definitions])
        self._shared.inputs.begin()
        for lane in self._lanes:
            lane.steps.begin(recent)
        first, *others = self._lanes
        if in_turn:
            for lane in self._lanes:
                lane.run(bring)
            return
        begun = [self._pool.submit(lane.run, bring) for lane in others]
        try:
            first.run(bring)
        finally:
            wait(begun)
        for each in begun:
            each.result()

    def close(self) -> None:
        """End the threads, and give up what is kept in memory."""
        self._pool.shutdown()
        self._close_lanes()

    def _open(self, shares: Sequence[Sequence[Definition]]) -> None:
        self._lanes = [
            _Lane(share, self._make(share, len(shares), self._shared)) for share in shares
        ]
        self._lane_of = {one.table: lane for lane in self._lanes for one in lane.definitions}

    def _close_lanes(self) -> None:
        for lane in self._lanes:
            lane.close()


def shared_out(definitions: Sequence[Definition], most: int) -> list[list[Definition]]:
    """Return the definitions of at most so many lanes, each in the given order.

    A table is in the lane of its inputs. All that are made of events are in one lane: the log is
    read by one thread.
    """
    lanes: list[list[Definition]] = [[] for _ in range(max(1, most))]
    for group in sorted(_groups(definitions), key=len, reverse=True):
        min(lanes, key=len).extend(group)
    places = {one.table: place for place, one in enumerate(definitions)}
    ordered = [sorted(lane, key=lambda one: places[one.table]) for lane in lanes]
    return [lane for lane in ordered if lane] or [[]]


def _groups(definitions: Sequence[Definition]) -> list[list[Definition]]:
    """Return the definitions in groups, of which none needs another; inputs come first."""
    groups: list[list[Definition]] = []
    for definition in definitions:
        needed = [group for group in groups if any(_together(one, definition) for one in group)]
        groups = [group for group in groups if group not in needed]
        groups.append([*(one for group in needed for one in group), definition])
    return groups


def _together(earlier: Definition, later: Definition) -> bool:
    return earlier.table in later.inputs or (earlier.is_of_events and later.is_of_events)
