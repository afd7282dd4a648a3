"""Runs the job until it is stopped: a landing query and, beside it, rounds of apply."""

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from cdc.apply.log_replay import do_nothing
from cdc.client.plan import RELOADED
from cdc.config import Config
from cdc.errors import CdcError
from cdc.job import health_watch
from cdc.job.activity import Activity
from cdc.job.compose_run import compose_run
from cdc.job.free_memory import giving_back
from cdc.job.handlers import RunningDesk, running_desk
from cdc.job.monitor import monitored
from cdc.job.start_progress import reporting_alive
from cdc.lake import lock
from cdc.lake.files.unreachable import store_errors_named
from cdc.lake.layout import is_local
from cdc.lake.session import build, end, held_for, starts_jvm
from cdc.lake.upkeep.held import end_holds_of_job
from cdc.lake.writable import refuse_unwritable
from cdc.stack.artifacts import class_archive
from cdc.stack.artifacts.class_archive import ClassArchive
from cdc.stack.artifacts.lock_file import spark_jars
from cdc.state import job_settings, reload
from cdc.state.endpoints import Endpoints
from cdc.state.job_state import RELOADING, JobStateFile
from cdc.state.pipeline import Pipeline


def run(
    read: Callable[[], Config],
    stop: threading.Event,
    await_turn: Callable[[], Endpoints],
) -> None:
    """Land and apply until ``stop`` is set; raise any other error that ends the job.

    ``read`` reads the configuration file: at the start, and on every request to reload it.
    ``await_turn`` returns once the servers and the connector run; Spark starts beside them.
    """
    config = read()
    with monitored(config), _session(config) as spark, store_errors_named(), giving_back():
        endpoints = await_turn()
        refuse_unwritable(config)
        with lock.only_job(config, partial(held_for, spark)):
            state_file = JobStateFile(config.state_dir)
            state_file.enter("starting")
            end_holds_of_job(config.lake.path)
            try:
                _keep_running(read, config, _Job(endpoints, spark, stop, state_file))
            finally:
                state_file.enter("stopped")


@contextmanager
def _session(config: Config) -> Iterator[SparkSession]:
    """Hold the job's session; its first JVM leaves an archive of its classes to later ones."""
    archive, jars = ClassArchive(), spark_jars(objects=not is_local(config.lake.path))
    if starts_jvm(config):
        archive = class_archive.archive("job", class_archive.spark_class_path(jars))
    spark = build(config, jars, archive.flags)
    try:
        yield spark
    finally:
        if archive.partial is None:
            spark.stop()
        else:
            end(spark)
            archive.settle()
            archive.give_up()


@dataclass(frozen=True, slots=True)
class _Job:
    """Holds what outlives a change of the configuration."""

    endpoints: Endpoints
    spark: SparkSession
    stop: threading.Event
    state_file: JobStateFile


def _keep_running(read: Callable[[], Config], config: Config, job: _Job) -> None:
    """Start another run with the file's configuration on every request to reload it."""
    while not job.stop.is_set():
        token = reload.unanswered_token(config.state_dir)
        wanted, error = _reloaded(read, config) if token else (config, None)
        done = (
            partial(reload.answer_reload, config.state_dir, token, error) if token else do_nothing
        )
        try:
            _run(wanted, job, done)
        except CdcError as refusal:
            if token is None or reload.unanswered_token(config.state_dir) != token:
                raise
            # The new configuration does not work: say why, and go on with the old one.
            reload.answer_reload(config.state_dir, token, refusal)
        else:
            config = wanted


def _reloaded(read: Callable[[], Config], before: Config) -> tuple[Config, CdcError | None]:
    """Return ``before`` with the keys that a running job can change; all other keys need a restart.

    A file that cannot be read changes nothing; its error is returned too.
    """
    try:
        wanted = read()
    except CdcError as error:
        return before, error
    names = [key.removeprefix("source.") for key in RELOADED if key.startswith("source.")]
    source = {name: getattr(wanted.source, name) for name in names}
    change = {
        "derived": wanted.derived,
        "job": wanted.job,
        "source": before.source.model_copy(update=source),
    }
    return before.model_copy(update=change), None


def _run(config: Config, job: _Job, done: Callable[[], None]) -> None:
    """Run until the job is stopped or reloaded; call ``done`` as soon as it applies."""
    pipeline = Pipeline(config, job.endpoints)
    job.state_file.enter("starting")  # after a reload too: the health watch does not run yet
    with ExitStack() as parts:
        with reporting_alive(job.state_file, Activity(job.spark.sparkContext).is_going_on):
            composed = compose_run(pipeline, job.spark, job.state_file)
            run = parts.enter_context(closing(composed))
            run.catch_up(job.state_file.step)
            landing = parts.enter_context(run.landing())
        run.read_missing()
        facts = partial(run.facts, Activity(job.spark.sparkContext))
        desk = parts.enter_context(running_desk(run.context))
        parts.enter_context(health_watch.watch_health(pipeline, run.topics, facts))
        job_settings.remember(config, run.derived.digests)
        job.state_file.enter("applying")
        done()
        is_over = _EndOfRun(job, config.state_dir, desk).is_reached
        run.apply(landing, is_over, job.state_file.set_alarm)


@dataclass(frozen=True, slots=True)
class _EndOfRun:
    """Ends the rounds when the job is stopped or its configuration is reloaded.

    Before a reload the running operation has to end. The rounds go on meanwhile, so that
    publishing does not wait for it.
    """

    job: _Job
    state_dir: Path
    desk: RunningDesk

    def is_reached(self) -> bool:
        """Return whether the rounds have to end now; ask the desk to end before a reload."""
        if self.job.stop.is_set():
            return True
        if reload.unanswered_token(self.state_dir) is None:
            return False
        if self.job.state_file.state != RELOADING:
            self.job.state_file.enter(RELOADING)
        return self.desk.ended()
