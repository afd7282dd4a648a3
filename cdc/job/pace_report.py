"""Writes down how fast the job is and how it applies, for ``status`` and for measurements."""

import time
from collections.abc import Iterable
from pathlib import Path

from cdc.apply.table.applied_table import AppliedTable
from cdc.observe.recent_freshness import RecentFreshness
from cdc.observe.stage_times import StageTimes
from cdc.state import pace
from cdc.waiting import Every


class PaceReport:
    """Replaces the file of the pace (cdc/state/pace.py); used by the thread of the rounds."""

    def __init__(
        self,
        state_dir: Path,
        asked_seconds: float,
        *,
        recent: RecentFreshness,
        stages: StageTimes,
        tables: Iterable[AppliedTable],
    ) -> None:
        """``asked_seconds`` is the freshness that is asked for."""
        self._state_dir, self._asked = state_dir, asked_seconds
        self._recent, self._stages = recent, stages
        self._tables = tuple(tables)
        self._due = Every(pace.SECONDS)

    def look(self) -> None:
        """Write the file, if the last one is old enough."""
        if self._due.is_due():
            pace.write(
                self._state_dir,
                time.monotonic(),
                asked_seconds=self._asked,
                reached=self._recent.reached(),
                stages=self._stages.as_json(),
                freshness=self._recent.as_json(),
                ways={str(table.schema.table): table.way for table in self._tables},
            )
