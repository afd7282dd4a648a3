"""Keeps old versions of a table for as long as is promised, and no longer: see ``KeptVersions``."""

import math
import re
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from typing import Final, TypeVar

import structlog

from cdc.config import Job
from cdc.lake.alter.alter import alter
from cdc.lake.commit.alteration import SetProperties
from cdc.lake.layout import lake_of
from cdc.lake.own_session import AnySession
from cdc.lake.table.positions import open_table
from cdc.lake.upkeep.held import oldest_hold
from cdc.lake.upkeep.history import HOURS, LOOK_COMMITS, hours_kept
from cdc.lake.upkeep.old_versions import Cleaned, clean

T = TypeVar("T")

HOUR: Final = 3600
LOG_KEPT: Final = "delta.logRetentionDuration"
FILES_KEPT: Final = "delta.deletedFileRetentionDuration"
CLEANED_BY_DELTA: Final = "delta.enableExpiredLogCleanup"
USUAL: Final = {
    LOG_KEPT: "interval 2592000 seconds",
    FILES_KEPT: "interval 604800 seconds",
    CLEANED_BY_DELTA: "true",
}
"""Delta's defaults for a table without these properties."""
PARTS: Final = 8
"""How often the table is cleaned within the time that versions are kept."""
LEAST_SECONDS: Final = 10.0
"""The shortest time between two cleanings, unless many commits are made in it."""
_INTERVAL: Final = re.compile(r"interval (\d+) seconds")
logger = structlog.get_logger(__name__)


class KeptVersions:
    """Cleans away old versions of the table at ``path``; called after each commit, by its thread.

    How long they are kept is a property of the table, so that whoever else makes a checkpoint or
    a VACUUM agrees. Without ``job.vacuum_retention_hours`` it follows the number of versions
    (cdc/lake/upkeep/history.py). Cleaning is the work of ``executor``, if there is one.
    """

    def __init__(
        self, path: str, policy: Job, clock: Callable[[], float], executor: Executor | None
    ) -> None:
        self._path = path
        self._asked = policy.vacuum_retention_hours
        self._most = policy.vacuum_every_hours * HOUR
        self._clock = clock
        self._submit = at_once if executor is None else executor.submit
        self._known = self._asked
        self._work: Future[Cleaned] | None = None
        self._commits = 0
        self._is_told = False  # the table's properties say what was asked for
        self._due_at = clock() + min(60, self._most)  # also in jobs that never run for long

    def committed(self, session: AnySession, metadata: str) -> None:
        """Clean the table if it is due; ``metadata`` is the position to repeat in a commit.

        A commit is only made if the table is to keep versions for another time than before.
        """
        self._commits += 1
        if self._work is not None and self._work.done():
            work, self._work = self._work, None
            self._end(work, session, metadata)
        many = self._asked is None and self._commits >= LOOK_COMMITS
        if self._work is None and (many or self._clock() >= self._due_at):
            self._commits, self._due_at = 0, self._clock() + self._every
            self._work = self._submit(clean, self._path, self.since())

    def keep(self, session: AnySession, metadata: str) -> None:
        """Set how long Delta keeps removed files, and the commits that open their versions.

        Makes a commit only if the table's properties change.
        """
        interval = f"interval {math.ceil(self.hours * HOUR)} seconds"
        wanted = {LOG_KEPT: interval, FILES_KEPT: interval, CLEANED_BY_DELTA: "false"}
        have = self._properties()
        if all(have.get(name, USUAL[name]) == text for name, text in wanted.items()):
            return
        alter(session, self._path, SetProperties(wanted), metadata)

    def clean_next(self) -> None:
        """Have the next ``committed`` clean the table."""
        self._due_at = -math.inf

    def since(self) -> float:
        """Return from when on versions are needed, in seconds since 1970."""
        return self._since(time.time() - self.hours * HOUR)

    def are_held(self) -> bool:
        """Return whether somebody holds versions that have expired."""
        expired = time.time() - self.hours * HOUR
        return self._since(expired) < expired

    @property
    def hours(self) -> float:
        """Return how long versions are kept."""
        if self._known is None:
            found = _INTERVAL.fullmatch(self._properties().get(FILES_KEPT, ""))
            self._known = int(found[1]) / HOUR if found else HOURS[0]
        return self._known

    @property
    def _every(self) -> float:
        return max(LEAST_SECONDS, min(self.hours * HOUR / PARTS, self._most))

    def _since(self, expired: float) -> float:
        hold = oldest_hold(lake_of(self._path))
        return expired if hold is None else min(hold, expired)

    def _end(self, work: Future[Cleaned], session: AnySession, metadata: str) -> None:
        try:
            cleaned = work.result()
        except OSError as error:
            logger.warning("old versions are not cleaned", path=self._path, reason=str(error))
            return
        if cleaned.files:
            logger.info("cleaned", path=self._path, files=cleaned.files)
        if self._asked is None:
            self._adapt(session, metadata, hours_kept(self.hours, cleaned.ages))
        elif not self._is_told:
            self.keep(session, metadata)
            self._is_told = True

    def _adapt(self, session: AnySession, metadata: str, hours: float) -> None:
        if hours != self.hours:
            logger.info("versions are kept", path=self._path, hours=hours)
            self._known = hours
            self.keep(session, metadata)
            self.clean_next()

    def _properties(self) -> Mapping[str, str]:
        table = open_table(self._path)
        return table.metadata().configuration if table else {}


def at_once(work: Callable[[str, float], T], path: str, since: float) -> Future[T]:
    """Do the work now, as an executor would later."""
    future = Future[T]()
    try:
        future.set_result(work(path, since))
    except Exception as error:  # noqa: BLE001 - as every executor does
        future.set_exception(error)
    return future
