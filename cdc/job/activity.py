"""Whether the job computes: what of Spark's jobs went on, and what the processors did for it."""

import os
import time
from typing import Final

import psutil
from pyspark import SparkContext

_SHARE: Final = 0.3
"""Of one processor. An idle job, which lands and publishes heartbeats, takes less."""
_NEWEST: Final = 20
"""More jobs than run at a time."""


class Work:
    """Asked again and again by one thread; the first answer is that it does."""

    def __init__(self, context: SparkContext) -> None:
        self._tracker = context.statusTracker()
        self._process = psutil.Process(os.getpid())
        self._jobs: object = None
        self._used, self._at = self._seconds(), time.monotonic()

    def is_going_on(self) -> bool:
        """Whether anything was done since the last time: here, or on Spark's executors."""
        jobs, used, at = self._tasks_done(), self._seconds(), time.monotonic()
        busy = used - self._used >= _SHARE * (at - self._at)
        moved = jobs != self._jobs
        self._jobs, self._used, self._at = jobs, used, at
        return busy or moved

    def _tasks_done(self) -> object:
        """Of the jobs that are not the landing query's, which has a group of its own."""
        newest = sorted(self._tracker.getJobIdsForGroup(None))[-_NEWEST:]
        infos = [info for number in newest if (info := self._tracker.getJobInfo(number))]
        stages = [stage for info in infos if info.status == "RUNNING" for stage in info.stageIds]
        found = [self._tracker.getStageInfo(stage) for stage in stages]
        done = tuple((info.stageId, info.numCompletedTasks) for info in found if info)
        return newest[-1:], done

    def _seconds(self) -> float:
        """Of the processors, by this process and all that it started."""
        used = 0.0
        for process in (self._process, *self._process.children(recursive=True)):
            try:
                times = process.cpu_times()
            except psutil.Error:
                continue
            used += times.user + times.system
        return used
