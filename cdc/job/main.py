"""The long-running job: one landing query, and rounds of apply beside it, until it is stopped."""

import threading
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from cdc.apply.replay import nothing
from cdc.client.plan import RELOADED
from cdc.config import Config
from cdc.errors import CdcError
from cdc.job import health_watch
from cdc.job.activity import Work
from cdc.job.composition import compose
from cdc.job.handlers import DeskWork, at_work
from cdc.job.start_progress import told_alive
from cdc.lake import lock
from cdc.lake.layout import refuse_unwritable
from cdc.lake.session import build
from cdc.stack.artifacts.lock_file import spark_jars
from cdc.state import reload, settings
from cdc.state.endpoints import Endpoints
from cdc.state.job_state import RELOADING, Told


def run(read: Callable[[], Config], endpoints: Endpoints, stop: threading.Event) -> None:
    """Land and apply until ``stop`` is set; raises what ended the job otherwise.

    ``read`` gives the configuration as its file has it now, at the start and when somebody asks.
    """
    config = read()
    refuse_unwritable(config)
    with lock.alone(config):
        told = Told(config.state_dir)
        told.enter("starting")
        try:
            spark = build(config, spark_jars())
            try:
                _keep_running(read, config, _Job(endpoints, spark, stop, told))
            finally:
                spark.stop()
        finally:
            told.enter("stopped")


@dataclass(frozen=True, slots=True)
class _Job:
    """What stays when the configuration changes."""

    endpoints: Endpoints
    spark: SparkSession
    stop: threading.Event
    told: Told


def _keep_running(read: Callable[[], Config], config: Config, job: _Job) -> None:
    """Begin anew with the configuration of the file whenever somebody asks for it."""
    while not job.stop.is_set():
        token = reload.pending(config.state_dir)
        wanted, error = _read_again(read, config) if token else (config, None)
        done = partial(reload.done, config.state_dir, token, error) if token else nothing
        try:
            _run(wanted, job, done)
        except CdcError as refused:
            if token is None or reload.pending(config.state_dir) != token:
                raise
            # It does not go with the new one: the asker hears why, and the old one goes on.
            reload.done(config.state_dir, token, refused)
        else:
            config = wanted


def _read_again(read: Callable[[], Config], before: Config) -> tuple[Config, CdcError | None]:
    """What of the file a running job takes over; all of before where it cannot be read.

    The other keys count after the next start.
    """
    try:
        wanted = read()
    except CdcError as error:
        return before, error
    names = [key.removeprefix("source.") for key in RELOADED if key.startswith("source.")]
    source = {name: getattr(wanted.source, name) for name in names}
    change = {"job": wanted.job, "source": before.source.model_copy(update=source)}
    return before.model_copy(update=change), None


def _run(config: Config, job: _Job, done: Callable[[], None]) -> None:
    """Until the job is to stop or the configuration changed; ``done`` once it applies."""
    job.told.enter("starting")  # also again: nothing watches before it applies
    with ExitStack() as parts:
        with told_alive(job.told, Work(job.spark.sparkContext).is_going_on):
            run = parts.enter_context(closing(compose(config, job.spark, job.endpoints, job.told)))
            run.catch_up(job.told.step)
            landing = parts.enter_context(run.landing())
        run.read_lost()
        facts = partial(run.facts, Work(job.spark.sparkContext))
        work = parts.enter_context(at_work(run.context))
        parts.enter_context(health_watch.watched(config, job.endpoints, run.topics, facts))
        settings.remember(config)
        job.told.enter("applying")
        done()
        run.apply(landing, _Until(job, config.state_dir, work).is_set, job.told.hear)


@dataclass(frozen=True, slots=True)
class _Until:
    """What ends the rounds: the end of the job, or a change of its configuration.

    For that an operation has to end first, and meanwhile the rounds go on: publishing does not
    wait for it.
    """

    job: _Job
    state_dir: Path
    work: DeskWork

    def is_set(self) -> bool:
        if self.job.stop.is_set():
            return True
        if reload.pending(self.state_dir) is None:
            return False
        if self.job.told.state != RELOADING:
            self.job.told.enter(RELOADING)
        return self.work.ended()
