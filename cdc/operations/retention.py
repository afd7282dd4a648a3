"""Decides how long history is kept: requests images that are due, and tells what may expire."""

from datetime import UTC, datetime, timedelta
from typing import Final

from cdc.capture.continuity import marker_topic
from cdc.config import Config, Job
from cdc.lake.layout import ledger_path, readings_path
from cdc.lake.records import expiry
from cdc.lake.records.ledger import Ledger, LedgerRow
from cdc.lake.records.readings import Readings
from cdc.lake.upkeep.history import HOURS
from cdc.operations.automatic import make_images
from cdc.tables import TableId
from cdc.waiting import Every

_LOOKS: Final = 24
"""How many times within the log's retention to check whether images are due."""
_LEAST_SECONDS: Final = 1.0
"""The shortest time between two of these checks."""


def cuts_kept(policy: Job) -> timedelta | None:
    """Return how long a cut stays in the ledger: as long as it can be read or replayed.

    None: for ever.
    """
    if policy.log_retention_hours is None:
        return None
    versions = policy.vacuum_retention_hours
    readable = max(HOURS) if versions is None else versions
    return timedelta(hours=max(policy.log_retention_hours, readable))


class Retention:
    """Applies the retention policy of one run of the job; each method is for one thread."""

    def __init__(self, config: Config) -> None:
        hours = config.job.log_retention_hours
        self._config = config
        self._retention = None if hours is None else timedelta(hours=hours)
        seconds = 0.0 if hours is None else hours * 3600 / _LOOKS
        self._looks = Every(max(seconds, _LEAST_SECONDS))

    def look(self) -> None:
        """Request the images that are due."""
        if self._retention is None or not self._looks.is_due():
            return
        if (cuts := self._first_and_last_cut()) is None:
            return
        now, readings = datetime.now(UTC), Readings(readings_path(self._config)).rows()
        due = expiry.tables_due_for_image(*cuts, readings, now=now, retention=self._retention)
        make_images(self._config, due)

    def expired(self) -> dict[str, tuple[int, int]]:
        """Return, by topic, the last landing and offset of the log that no cut needs any more."""
        if self._retention is None or (cuts := self._first_and_last_cut()) is None:
            return {}
        return expiry.expired_places(
            *cuts,
            Readings(readings_path(self._config)).rows(),
            topic=lambda name: TableId.parse(name).topic(self._config.name),
            marker_topic=marker_topic(self._config),
        )

    def _first_and_last_cut(self) -> tuple[LedgerRow, LedgerRow] | None:
        ledger = Ledger(ledger_path(self._config))
        first, last = ledger.first(), ledger.last()
        return None if first is None or last is None else (first, last)
