"""Runs rounds: finds the next cut in what has landed, brings every table there, publishes it.

A round that was interrupted anywhere is repeated from the same slice of the log. A table that is
at the cut already has its position in its own commit, so the round does not touch it again.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import structlog

from cdc.apply.rounds.applied_tables import AppliedTables
from cdc.apply.rounds.cut_finder import CutFinder
from cdc.apply.rounds.cut_requests import CutRequests
from cdc.apply.rounds.last_cut import LastCut
from cdc.apply.rounds.publisher import Publisher
from cdc.apply.rounds.stuck_transaction import StuckTransactionAlarm
from cdc.apply.rounds.whole_transactions import Cut
from cdc.land import landing as landed_values
from cdc.land.inbox import Inbox
from cdc.land.landing import Landing
from cdc.state.requests import Request

IDLE_SECONDS: Final = 1.0
"""How long an idle job waits before it looks for requests again; a landing ends the wait."""
logger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class RoundChecks:
    """Hold the checks that the rounds make before and beside the tables."""

    stuck: StuckTransactionAlarm
    source: Callable[[int], None]
    """Called with the LSN of a cut before any table is brought there; raises CHAIN_BROKEN where the
    source is not the one that the lake follows."""
    idle_source: Callable[[int], None]
    """The same while no cut is due; called every second."""


class Rounds:
    """One thread runs the rounds; others may read ``alarm`` and ``turns``."""

    def __init__(
        self,
        finder: CutFinder,
        tables: AppliedTables,
        publisher: Publisher,
        *,
        inbox: Inbox,
        requests: CutRequests,
        checks: RoundChecks,
        budget: int,
    ) -> None:
        """``budget`` limits the events of a round, unless a single transaction has more."""
        self._finder = finder
        self._tables = tables
        self._publisher = publisher
        self._inbox = inbox
        self._requests = requests
        self._checks = checks
        self._budget = budget
        self._incomplete: Cut | None = None
        self._fruitless: object = None  # what the last search looked at, if it found nothing
        self.alarm = ""
        """What blocks publishing and does not go away by itself; empty for nothing."""
        self.turns = 0
        """How many rounds published, or had nothing to publish; the health watch sees it move."""

    def close(self) -> None:
        """End the threads that bring tables to a cut."""
        self._tables.close()

    def run(self, until: Callable[[], bool], between: Callable[[], None]) -> None:
        """Run rounds until ``until`` returns true; call ``between`` after each.

        An idle job waits for the next landing, and checks meanwhile that the source is still the
        one that the lake follows.
        """
        seen = 0
        while not until():
            waiting = self._inbox.waiting()
            if not self.round():
                seen = waiting[-1].number if waiting else seen
                self._checks.idle_source(self._publisher.last.lsn)
                self._inbox.wait(seen, IDLE_SECONDS)
            between()

    def round(self) -> bool:
        """Publish the next cut, or find out what it waits for; return whether anything moved."""
        last = self._publisher.last
        landed = self._finder.landed(last)
        # The requests are listed after the landings: a commit that landed before a request was
        # written lies before the snapshot that the request is about (cdc/client/moment.py).
        waiting = self._requests.pending(last.lsn)
        if any(request.bound is None for request in waiting):
            return False
        searched = landed, waiting, last.row.cut, self._tables.places()
        if searched != self._fruitless:
            self._incomplete = None
            if self._moved(landed, waiting, last):
                self.turns += 1
                return True
            self._fruitless = searched
        self._look_for_stuck(self._incomplete)
        if not waiting and (self._incomplete is None or self._incomplete.incomplete is None):
            self.turns += 1
        return False

    def _moved(self, landed: Sequence[Landing], waiting: Sequence[Request], last: LastCut) -> bool:
        held, budget = self._finder.held_topic_count, self._budget
        while landed:
            taken = landed_values.within_budget(landed, budget)
            if self._advance(taken, waiting, last) or self._finder.held_topic_count != held:
                return True
            if len(taken) == len(landed):
                break
            budget *= 2  # a transaction may be larger than the budget
        return False

    def _advance(self, taken: Sequence[Landing], waiting: Sequence[Request], last: LastCut) -> bool:
        schemas = self._finder.schemas(taken)
        with self._finder.slice(taken, last) as part:
            goal = self._finder.find(part, waiting, last)
            if goal is None:
                return False
            if not goal.is_due:
                self._incomplete = goal.cut
                return False
            self._look_for_stuck(None)
            self._checks.source(goal.cut.lsn or last.lsn)
            self._publisher.mark_snapshot_end(goal.cut)
            ids = landed_values.schema_ids(taken)
            self._tables.bring(part, goal.cut, self._publisher.last, schemas, ids)
            self._publisher.publish(goal.cut, part, goal.served)
            if goal.served:
                self._requests.mark_served(goal.served)
        return True

    def _look_for_stuck(self, cut: Cut | None) -> None:
        """Log once that a transaction is stuck, and once that it is no longer."""
        alarm = self._checks.stuck.look(cut)
        if alarm != self.alarm:
            self.alarm = alarm
            if alarm:
                logger.error("alarm", reason=alarm)
            else:
                logger.info("alarm ended")


def stuck_transactions(patience_seconds: float) -> StuckTransactionAlarm:
    """Return the alarm for transactions that stay incomplete for longer than the patience."""
    return StuckTransactionAlarm(patience_seconds, time.monotonic)
