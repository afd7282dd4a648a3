"""A configuration is taken over while an operation is in the middle of an action of Spark.

What is driven is the job's own loop over runs, with the desk; the action is a thread that waits,
as it does for Spark, until it is let go or until the jobs of its tag are cancelled.
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
from cdc.job import handlers as at_work
from cdc.job import health_watch, main
from cdc.operations.desk.reporter import Reporter
from cdc.state import operation_files, reload, settings
from cdc.state.job_state import Told
from cdc.state.operation import Operation, OperationState
from tests.unit.desk_room import operation
from tests.waiting import until as wait_until


class Spark:
    """Its one action: it commits when it is let go, unless it is cancelled before."""

    def __init__(self) -> None:
        self.sparkContext = self
        self.inside, self.go, self.cancelled = (threading.Event() for _ in range(3))
        self.commits: list[str] = []

    def setLocalProperty(self, _name: str, _value: str) -> None:  # noqa: N802 - Spark's own
        """Nothing is scheduled."""

    def addJobTag(self, _tag: str) -> None:  # noqa: N802 - Spark's own
        """There is one action."""

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
    """One without tables."""

    def __init__(self, config: Config, spark: Spark) -> None:
        self.context = SimpleNamespace(config=config, spark=spark)
        self.topics: list[str] = []
        self.catch_up = self.facts = self.read_lost = self.close = lambda *_: None

    def apply(self, _landing: Any, until: Callable[[], bool], _hear: Any) -> None:  # noqa: ANN401
        wait_until(until)

    @contextmanager
    def landing(self) -> Iterator[Any]:
        yield SimpleNamespace(refuse_ended=lambda: None)


def old_desks() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == "desk"]


def test_no_run_begins_while_an_operation_of_the_one_before_can_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = Lake(path=str(tmp_path / "lake"))
    config = Config(source=Source(tables=["shop.*"]), lake=lake, state_dir=tmp_path)
    spark, stop = Spark(), threading.Event()
    left: list[int] = []

    def compose(config: Config, spark: Spark, *_: object) -> Run:
        left.append(len(old_desks()))
        spark.commits.append("a run begins")
        if len(left) > 1:
            spark.go.set()  # what is left of the old one may end now
            for thread in old_desks():
                thread.join()
        return Run(config, spark)

    def work(_asked: Operation, _reporter: Reporter) -> None:
        if len(left) == 1:
            spark.act()

    def handlers(context: Any) -> dict[str, Callable[[Operation, Reporter], None]]:  # noqa: ANN401 - a stand-in
        return {"copy": at_work._shared(context, work)}

    monkeypatch.setattr(at_work, "_STOP_SECONDS", 0.5, raising=False)
    monkeypatch.setattr(at_work, "GRACE_SECONDS", 0.1, raising=False)
    monkeypatch.setattr(main, "compose", compose)
    monkeypatch.setattr(at_work, "handlers", handlers)
    monkeypatch.setattr(settings, "remember", lambda _: None)
    monkeypatch.setattr(health_watch, "watched", lambda *_: nullcontext())
    monkeypatch.setattr(main, "Work", lambda _: SimpleNamespace(is_going_on=lambda: True))
    job: Any = main._Job(SimpleNamespace(), spark, stop, Told(tmp_path))  # type: ignore[arg-type]
    keep = partial(main._keep_running, lambda: config, config, job)
    thread = threading.Thread(target=keep)
    asked = operation()
    operation_files.ask(tmp_path, asked)
    thread.start()
    try:
        wait_until(spark.inside.is_set)
        reload.ask_reload(tmp_path)
        wait_until(lambda: reload.pending(tmp_path) is None)
        wait_until(lambda: operation_files.progress(tmp_path, asked.id).state.ended)
    finally:
        spark.go.set()
        stop.set()
        thread.join(60)

    assert left == [0, 0], "an operation of the old run was at work when the new one began"
    assert spark.commits == ["a run begins", "a run begins"]
    ended = operation_files.progress(tmp_path, asked.id)
    assert (ended.state, ended.starts) == (OperationState.DONE, 1)  # by the new run, and no death
