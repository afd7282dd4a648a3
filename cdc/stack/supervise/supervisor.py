"""Brings up everything that ``up`` runs, and keeps it up until a signal, an error or ``down``."""

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import NoReturn

from cdc.config import Config
from cdc.errors import CdcError, ErrorKind
from cdc.observe.defects import error_text
from cdc.stack.artifacts.prerequisites import disk_full_named
from cdc.stack.embedded import EmbeddedStack
from cdc.stack.process.log_files import crash_file, keep_crash, keep_silent_end, last_crash
from cdc.stack.process.process import ProcessIdentity
from cdc.stack.process.stack_report import READY, STARTING, STOPPING, StackReport
from cdc.stack.process.stack_report import read as report_of
from cdc.stack.servers.job import JobProcess
from cdc.stack.supervise.connector_watch import Absence, ConnectorWatch
from cdc.stack.supervise.watch import Watch, member_of
from cdc.state.directory import StateDir
from cdc.state.pipeline import Pipeline

Say = Callable[[str], None]
Establish = Callable[[Pipeline, Say], object]

_LOOK_EVERY_SECONDS = 0.5
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """Holds the caller's hooks: what the supervisor does besides running servers.

    ``establish`` connects the source before the job starts. ``is_at_source`` returns whether the
    connector has a session at the source, None if that is unknown. ``exclude_unreadable`` lets a
    failed connector continue without what it cannot read and returns what that is; its last
    argument is True if the connector failed at an event. It raises CHAIN_BROKEN if the connector
    must not continue. ``on_progress`` and ``on_ready`` inform the user.
    """

    establish: Establish
    is_at_source: Callable[[Pipeline], bool | None]
    exclude_unreadable: Callable[[Pipeline, bool], Sequence[object]]
    job_config: Path | None  # None: run no job
    on_progress: Say
    on_ready: Callable[[Pipeline], None]


def supervise(config: Config, steps: Steps) -> None:
    """Start everything, keep it running until a signal, then stop everything.

    Raises the error of a failed start, or KeyboardInterrupt if a signal interrupted the start; in
    both cases after everything has been stopped.
    """
    with ends_on_signal(), EmbeddedStack(config, steps.on_progress) as stack:
        ended_silently = _keep_silent_end(stack.state)
        report = StackReport(state=stack.state, supervisor=ProcessIdentity.of(os.getpid()))
        stack.say = _to_report_and_user(report, steps)
        if ended_silently:
            stack.say(f"the previous supervisor crashed: {last_crash(stack.state)}")
        try:
            with disk_full_named(stack.state.root):
                _bring_up_and_keep(stack, report, steps)
        except KeyboardInterrupt:
            was_up = report.phase == READY
            report.enter(STOPPING)
            if not was_up:
                raise
        except CdcError as error:
            report.fail(error)
            raise
        except Exception as error:
            keep_crash(stack.state, error)
            report.fail(_defect(stack.state, error))
            raise


def _keep_silent_end(state: StateDir) -> bool:
    """Save what is known of the previous supervisor, if it ended without reporting an error.

    Returns whether it did.
    """
    before = report_of(state)
    if before.get("phase") not in {STARTING, READY}:
        return False
    events = before.get("events") or [{"what": "nothing"}]
    keep_silent_end(state, str(events[-1]["what"]))
    return True


def _defect(state: StateDir, error: Exception) -> CdcError:
    return CdcError(
        ErrorKind.INTERNAL,
        f"internal: {error_text(error)}",
        remedy=f"report this as a bug and attach {crash_file(state)}",
    )


def _to_report_and_user(report: StackReport, steps: Steps) -> Say:
    def say(what: str) -> None:
        report.event(what)
        steps.on_progress(what)

    return say


def _bring_up_and_keep(stack: EmbeddedStack, report: StackReport, steps: Steps) -> NoReturn:
    report.write()
    stack.make_ready()
    job = None if steps.job_config is None else _start_session(stack, steps.job_config)
    pipeline = Pipeline(stack.config, stack.start())
    stack.say("connecting to the source")
    steps.establish(pipeline, stack.say)
    if job is not None:
        _let_run(stack, job)
    report.members = {name: member_of(stack, name) for name in stack.processes}
    report.enter(READY)
    steps.on_ready(pipeline)
    absence = Absence(partial(steps.is_at_source, pipeline))

    def exclude_unreadable(*, at_an_event: bool) -> Sequence[object]:
        return steps.exclude_unreadable(pipeline, at_an_event)

    connector = ConnectorWatch(
        pipeline.endpoints.connect, pipeline.name, absence, exclude_unreadable
    )
    _keep_up(Watch(stack, report, connector))


def _start_session(stack: EmbeddedStack, config_path: Path) -> JobProcess:
    """Start the job's process, so that its Spark session starts beside the servers."""
    stack.say("starting job")
    job = JobProcess(stack.state, config_path)
    job.hold_back()
    stack.spawn(job)
    return job


def _let_run(stack: EmbeddedStack, job: JobProcess) -> None:
    """Let the job use the servers, and wait until it applies.

    It counts as started last, because it has to stop first.
    """
    stack.say("opening the tables")
    stack.servers[job.name] = job
    stack.processes[job.name] = stack.processes.pop(job.name)
    job.let_run()
    stack.await_ready(job)
    stack.say("job is applying")


def _keep_up(watch: Watch) -> NoReturn:
    while True:
        watch.look()
        time.sleep(_LOOK_EVERY_SECONDS)


@contextmanager
def ends_on_signal() -> Iterator[None]:
    """Turn the first SIGINT, SIGTERM or SIGHUP into KeyboardInterrupt and ignore later ones.

    Later signals therefore cannot disturb the shutdown.
    """

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    # A signal that is already ignored (nohup) stays ignored.
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
