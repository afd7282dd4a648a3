"""Tells whether the job is computing: by the progress of Spark's jobs and by processor time."""

import os
import time
from typing import Final

import psutil
from pyspark import SparkContext

_SHARE: Final = 0.3
"""Part of one processor; an idle job, which only lands and publishes heartbeats, uses less."""
_NEWEST: Final = 20
"""How many Spark jobs to look at: more than ever run at the same time."""


class Activity:
    """Compares the job with what it was at the last call; one thread calls it repeatedly.

    The first call always finds activity.
    """

    def __init__(self, context: SparkContext) -> None:
        self._tracker = context.statusTracker()
        self._process = psutil.Process(os.getpid())
        self._tasks: object = None
        self._cpu, self._at = self._cpu_seconds(), time.monotonic()

    def is_going_on(self) -> bool:
        """Return whether this machine or Spark's executors did anything since the last call."""
        tasks, cpu, at = self._tasks_done(), self._cpu_seconds(), time.monotonic()
        busy = cpu - self._cpu >= _SHARE * (at - self._at)
        moved = tasks != self._tasks
        self._tasks, self._cpu, self._at = tasks, cpu, at
        return busy or moved

    def _tasks_done(self) -> object:
        """Return the newest job and the finished tasks of running stages, to be compared.

        The landing query's jobs do not count: they are in a group of their own.
        """
        newest = sorted(self._tracker.getJobIdsForGroup(None))[-_NEWEST:]
        jobs = [job for number in newest if (job := self._tracker.getJobInfo(number))]
        ids = [stage for job in jobs if job.status == "RUNNING" for stage in job.stageIds]
        stages = [self._tracker.getStageInfo(stage) for stage in ids]
        done = tuple((stage.stageId, stage.numCompletedTasks) for stage in stages if stage)
        return newest[-1:], done

    def _cpu_seconds(self) -> float:
        """Return the processor time of this process and everything it started."""
        seconds = 0.0
        for process in (self._process, *self._process.children(recursive=True)):
            try:
                times = process.cpu_times()
            except psutil.Error:
                continue
            seconds += times.user + times.system
        return seconds
