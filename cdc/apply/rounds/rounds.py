"""Rounds: find the next cut in what has landed, bring every table there, publish it.

A round that is interrupted anywhere is repeated from the same slice of the log: a table that is
at the cut already has its position in its own commit and is left alone.
"""

import time
from collections.abc import Callable, Sequence
from typing import Final

import structlog

from cdc.apply.rounds.cut import Cut
from cdc.apply.rounds.cut_finder import CutFinder
from cdc.apply.rounds.cut_requests import CutRequests
from cdc.apply.rounds.last_cut import LastCut
from cdc.apply.rounds.publisher import Publisher
from cdc.apply.rounds.stuck_transaction import Unfilled
from cdc.apply.rounds.tables import Tables
from cdc.land import landing as landed_values
from cdc.land.inbox import Inbox
from cdc.land.landing import Landing
from cdc.state.requests import Request

IDLE_SECONDS: Final = 0.5  # how long a request for a cut may wait in an idle job
logger = structlog.get_logger(__name__)


class Rounds:
    """One thread runs the rounds; others may read ``alarm`` and ``turns``."""

    def __init__(
        self,
        finder: CutFinder,
        tables: Tables,
        publisher: Publisher,
        *,
        inbox: Inbox,
        requests: CutRequests,
        stuck: Unfilled,
        budget: int,
        check_source: Callable[[int], None],
    ) -> None:
        """``budget`` is how many events a round takes at most, unless a transaction has more.

        ``check_source`` is called with the LSN that a cut is to reach, before any table is brought
        there; it raises CHAIN_BROKEN where the source is not the one that the lake follows.
        """
        self._finder = finder
        self._tables = tables
        self._publisher = publisher
        self._inbox = inbox
        self._requests = requests
        self._stuck = stuck
        self._budget = budget
        self._check_source = check_source
        self._incomplete: Cut | None = None
        self.alarm = ""
        """What keeps cuts from being published and does not go away by itself."""
        self.turns = 0
        """Rounds that published, or left nothing that could have been: another one is a move."""

    def close(self) -> None:
        """Give up the threads that bring tables to a cut."""
        self._tables.close()

    def run(self, until: Callable[[], bool], between: Callable[[], None]) -> None:
        """Run rounds until ``until`` is true; ``between`` is called after each.

        An idle job waits for the next landing, and asks the source meanwhile whether it is still
        the one that the lake follows.
        """
        seen = 0
        while not until():
            waiting = self._inbox.waiting()
            if not self.round():
                seen = waiting[-1].number if waiting else seen
                self._check_source(self._publisher.last.lsn)
                self._inbox.wait(seen, IDLE_SECONDS)
            between()

    def round(self) -> bool:
        """Move to the next cut, or learn what it waits for; False when there is nothing to do."""
        last = self._publisher.last
        left = self._finder.landed(last)
        # Listed after the landings: a commit that landed before a request was written lies before
        # the snapshot that the request is about (cdc/client/moment.py).
        waiting = self._requests.pending(last.lsn)
        if any(request.bound is None for request in waiting):
            return False
        self._incomplete = None
        if self._moved(left, waiting, last):
            self.turns += 1
            return True
        self._look_for_stuck(self._incomplete)
        if not waiting and (self._incomplete is None or self._incomplete.incomplete is None):
            self.turns += 1
        return False

    def _moved(self, left: Sequence[Landing], waiting: Sequence[Request], last: LastCut) -> bool:
        held, budget = self._finder.held, self._budget
        while left:
            taken = landed_values.take(left, budget)
            if self._advance(taken, waiting, last) or self._finder.held != held:
                return True
            if len(taken) == len(left):
                break
            budget *= 2  # a transaction may be larger than the budget
        return False

    def _advance(self, taken: Sequence[Landing], waiting: Sequence[Request], last: LastCut) -> bool:
        schemas = self._finder.schemas(taken)
        with self._finder.slice(taken, schemas, last) as part:
            found = self._finder.find(part, waiting, last)
            if found is None:
                return False
            if not found.is_due:
                self._incomplete = found.cut
                return False
            self._look_for_stuck(None)
            self._check_source(found.cut.lsn or last.lsn)
            self._publisher.mark_snapshot_end(found.cut)
            ids = landed_values.schema_ids(taken)
            self._tables.bring(part, found.cut, self._publisher.last, schemas, ids)
            self._publisher.publish(found.cut, part, found.served)
            if found.served:
                self._requests.mark_served(found.served)
        return True

    def _look_for_stuck(self, cut: Cut | None) -> None:
        """Say once that a transaction does not fill, and once that it does."""
        alarm = self._stuck.look(cut)
        if alarm != self.alarm:
            self.alarm = alarm
            if alarm:
                logger.error("alarm", reason=alarm)
            else:
                logger.info("alarm ended")


def stuck_transactions(patience_seconds: float) -> Unfilled:
    """Look for transactions that stay incomplete for longer than the patience."""
    return Unfilled(patience_seconds, time.monotonic)
