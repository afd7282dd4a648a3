"""The configuration is reloaded while an operation is in the middle of a Spark action.

The test drives the job's own loop over runs, with a real desk. The Spark action is a stand-in
that waits until the test lets it go or until the jobs of its tag are cancelled.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cdc.config import Config, Lake, Source
from cdc.job import handlers as job_handlers
from cdc.job import health_watch, main
from cdc.operations.desk.reporter import Reporter
from cdc.state import job_settings, operation_files, reload
from cdc.state.job_state import JobStateFile
from cdc.state.operation import Operation, OperationState
from cdc.state.pipeline import Pipeline
from tests.unit.desk_room import operation
from tests.waiting import until as wait_until


class Spark:
    """Has one action, which commits when the test lets it go, unless it was cancelled before."""

    def __init__(self) -> None:
        self.sparkContext = self
        self.inside, self.go, self.cancelled = (threading.Event() for _ in range(3))
        self.commits: list[str] = []

    def setLocalProperty(self, _name: str, _value: str) -> None:  # noqa: N802 - Spark's own
        """Do nothing: nothing is scheduled."""

    def addJobTag(self, _tag: str) -> None:  # noqa: N802 - Spark's own
        """Do nothing: there is one action only."""

    def cancelJobsWithTag(self, _tag: str) -> None:  # noqa: N802 - Spark's own
        self.cancelled.set()
        self.go.set()

    def act(self) -> None:
        self.inside.set()
        assert self.go.wait(60)
        if self.cancelled.is_set():
            message = "cancelled"
            raise RuntimeError(message)
        self.commits.append("by the old run")


class Run:
    """Stands for a run without tables."""

    def __init__(self, config: Config, spark: Spark) -> None:
        self.context = SimpleNamespace(config=config, spark=spark)
        self.topics: list[str] = []
        self.derived = SimpleNamespace(digests={})
        self.catch_up = self.facts = self.read_missing = self.close = lambda *_: None

    def apply(self, _landing: Any, until: Callable[[], bool], _hear: Any) -> None:  # noqa: ANN401
        wait_until(until)

    @contextmanager
    def landing(self) -> Iterator[Any]:
        yield SimpleNamespace(refuse_ended=lambda: None)


def old_desks() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "desk"]


def test_no_run_begins_while_an_operation_of_the_one_before_can_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(path=str(tmp_path / "lake"))
    config = Config(source=Source(tables=["shop.*"]), lake=lake, state_dir=tmp_path)
    spark, stop = Spark(), threading.Event()
    left: list[int] = []

    def compose(pipeline: Pipeline, spark: Spark, *_: object) -> Run:
        left.append(len(old_desks()))
        spark.commits.append("a run begins")
        if len(left) > 1:
            spark.go.set()  # whatever is left of the old run may end now
            for thread in old_desks():
                thread.join()
        return Run(pipeline.config, spark)

    def work(_asked: Operation, _reporter: Reporter) -> None:
        if len(left) == 1:
            spark.act()

    def handlers(context: Any) -> dict[str, Callable[[Operation, Reporter], None]]:  # noqa: ANN401 - a stand-in
        return {"copy": job_handlers._shared(context, work)}

    monkeypatch.setattr(job_handlers, "GRACE_SECONDS", 0.1)
    monkeypatch.setattr(main, "compose_run", compose)
    monkeypatch.setattr(job_handlers, "handlers", handlers)
    monkeypatch.setattr(job_settings, "remember", lambda *_: None)
    monkeypatch.setattr(health_watch, "watch_health", lambda *_: nullcontext())
    monkeypatch.setattr(main, "Activity", lambda _: SimpleNamespace(is_going_on=lambda: True))
    job: Any = main._Job(SimpleNamespace(), spark, stop, JobStateFile(tmp_path))  # type: ignore[arg-type]
    keep = partial(main._keep_running, lambda: config, config, job)
    thread = threading.Thread(target=keep)
    asked = operation()
    operation_files.ask(tmp_path, asked)
    thread.start()
    try:
        wait_until(spark.inside.is_set)
        reload.ask_reload(tmp_path)
        wait_until(lambda: reload.unanswered_token(tmp_path) is None)
        wait_until(lambda: operation_files.progress(tmp_path, asked.id).state.ended)
    finally:
        spark.go.set()
        stop.set()
        thread.join(60)

    assert left == [0, 0], "an operation of the old run was still running when the new run began"
    assert spark.commits == ["a run begins", "a run begins"]
    ended = operation_files.progress(tmp_path, asked.id)
    # The new run did it, and the interruption does not count as a crash of the job.
    assert (ended.state, ended.starts) == (OperationState.DONE, 1)
