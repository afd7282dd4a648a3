"""Rebuilds a table as it was at a cut to a path of its own, whether the job runs or not."""

import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final

from deltalake.exceptions import DeltaError
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from cdc.apply.difference.likeness import Likeness, likeness
from cdc.apply.table.applied_table import AppliedTable
from cdc.apply.table.apply_context import ApplyContext
from cdc.apply.table.table_factory import TableFactory
from cdc.client.read.published import cut_at
from cdc.config import Config, masks_of
from cdc.errors import CdcError, ErrorKind
from cdc.events.schema import TableSchema
from cdc.kafka.broker import Broker
from cdc.kafka.registry_client import RegistryClient
from cdc.lake.layout import is_local, ledger_path, readings_path, table_path
from cdc.lake.records.ledger import Ledger, LedgerRow
from cdc.lake.records.quarantine import Quarantine
from cdc.lake.records.readings import Reading, Readings, readings_at
from cdc.lake.session import IN_COMMANDS, build
from cdc.lake.table import store
from cdc.lake.table.positions import open_table
from cdc.operations.desk.context import RebuildContext
from cdc.operations.replay.addresses import Addresses, unknown_address
from cdc.operations.replay.inputs import from_kafka, from_log, rebuild_from_kafka
from cdc.operations.replay.material import Hooks, end_at_cut
from cdc.operations.replay.place import refuse_taken
from cdc.operations.replay.rebuild import rebuild_table
from cdc.stack.artifacts import class_archive
from cdc.stack.artifacts.lock_file import spark_jars
from cdc.tables import TableId

KAFKA: Final = "kafka"
Say = Callable[[str], None]
"""Called with a line about what is being done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Report what lies at the path now, and whether it equals the lake's table at that cut."""

    table: str
    path: str
    events_from: str  # log or kafka
    cut: int | None  # None: the end of the topics
    offset: int
    rows: int
    events: int
    refused: int
    seconds: float  # to copy the events and to apply them
    likeness: Likeness | None  # None where the two were not compared
    not_compared: str = ""  # why not

    @property
    def rate(self) -> float:
        """Return the rows per second."""
        return self.rows / self.seconds if self.seconds else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayOptions:
    """Say what to rebuild, where, from what, and as of which cut."""

    table: TableId
    path: str
    events_from: str  # log or kafka
    at: str | None  # names a cut (cdc/client/read/at.py); None: the newest one


def replay_into(config: Config, options: ReplayOptions, *, say: Say) -> Outcome:
    """Rebuild the table to the path, and compare it with the lake's.

    Raises CONFIG where the path exists already or the cut is unknown, CHAIN_BROKEN where events
    are missing, TABLE_STOPPED where one cannot be followed.
    """
    refuse_taken(options.path)
    row = _cut(config, options)
    addresses = Addresses.of(config)
    placeholder = addresses.placeholder(config)
    jars = spark_jars(objects=not is_local(config.lake.path))
    archive = class_archive.existing("job", class_archive.spark_class_path(jars))
    spark = build(config, jars, archive.flags, log_level=IN_COMMANDS)
    try:
        with _scratch(config) as folder:
            context = RebuildContext(
                session=spark.newSession(),
                config=config,
                schemas_of=RegistryClient(addresses.registry).schemas,
                factory=_factory(config, placeholder, folder),
            )
            return _Replay(context, addresses.kafka, options, row, folder, say).run()
    finally:
        spark.stop()


def _cut(config: Config, options: ReplayOptions) -> LedgerRow | None:
    """Return the cut; None where the lake has no ledger and the events come from Kafka."""
    row = cut_at(Ledger(ledger_path(config)), options.at)
    if row is None and options.events_from != KAFKA:
        raise CdcError(
            ErrorKind.CONFIG,
            f"the lake at {config.lake.path} has no cut",
            remedy="correct lake.path; or rebuild the table from the topics: --from kafka",
        )
    return row


def _factory(config: Config, placeholder: str, folder: str) -> TableFactory:
    return TableFactory(
        ApplyContext(
            quarantine=Quarantine(f"{folder}/quarantine"),
            placeholder=placeholder,
            policy=config.job,
            schema_policy=config.source.schema_policy,
            masks=masks_of(config.source),
        )
    )


@contextmanager
def _scratch(config: Config) -> Iterator[str]:
    folder = config.state_dir / "scratch" / f"replay-{uuid.uuid4().hex}"
    try:
        yield str(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class _Replay:
    """Replays one table to a path; copies of topics go to ``folder``."""

    context: RebuildContext
    kafka: Broker | None
    options: ReplayOptions
    row: LedgerRow | None
    folder: str
    say: Say

    def run(self) -> Outcome:
        """Rebuild the table, and compare it with the lake's at the cut."""
        row, options = self.row, self.options
        started = time.monotonic()
        rebuilt = self._from_kafka() if options.events_from == KAFKA else self._from_log()
        seconds = time.monotonic() - started
        self.say("comparing with the lake")
        likeness, why_not = compare_with_cut(self.context.session, rebuilt, row)
        return Outcome(
            table=str(options.table),
            path=options.path,
            events_from=options.events_from,
            cut=row.cut if row else None,
            offset=rebuilt.position.offset,
            rows=likeness.rows if likeness else self._count(rebuilt),
            events=rebuilt.position.rows_applied,
            refused=rebuilt.position.refused,
            seconds=seconds,
            likeness=likeness,
            not_compared=why_not,
        )

    def _count(self, rebuilt: AppliedTable) -> int:
        return store.read(self.context.session, rebuilt.path).count()

    def _from_kafka(self) -> AppliedTable:
        context, table = self.context, self.options.table
        end = end_at_cut(self.row, table) if self.row else None
        if not self.kafka:
            raise unknown_address("Kafka", "kafka.bootstrap_servers")
        self.say(f"reading topic {table.topic(context.config.name)}")
        topics = from_kafka(
            context,
            self.kafka,
            table,
            end,
            folder=self.folder,
            readings=self._readings(),
            known=self._lake_schema(),
        )
        return rebuild_from_kafka(context, topics, table, self.options.path, self._hooks)

    def _from_log(self) -> AppliedTable:
        context, table = self.context, self.options.table
        assert self.row is not None  # noqa: S101 - _cut has refused a replay from the log then
        end = end_at_cut(self.row, table)
        self.say("reading the log")
        readings, known = self._readings(), self._lake_schema()
        material = from_log(context, table, end, readings=readings, known=known)
        rebuild = partial(rebuild_table, upto=end.upto, epoch=end.epoch, hooks=self._hooks)
        return rebuild(context.session, material, table, self.options.path)

    @property
    def _hooks(self) -> Hooks:
        """Only the terminal can pause this process, so nothing is called at safe points."""
        whence = self.options.events_from
        return Hooks(tell=lambda events: self.say(f"applying the {whence}: {events:,} events"))

    def _readings(self) -> list[Reading]:
        if self.row is None:
            return []
        name, index = str(self.options.table), Readings(readings_path(self.context.config))
        return readings_at(index.of(name), self.row, name)

    def _lake_schema(self) -> TableSchema | None:
        table = self.options.table
        try:
            return store.read_schema(table_path(self.context.config, table), table)
        except (DeltaError, PySparkException, Py4JJavaError, KeyError):
            return None  # the lake has no readable table, but a note may have the columns


def compare_with_cut(
    session: SparkSession, rebuilt: AppliedTable, row: LedgerRow | None
) -> tuple[Likeness | None, str]:
    """Compare a rebuilt table with the lake's at the version of the cut.

    Returns how they differ, or None and why they cannot be compared.
    """
    entry = row.entry(str(rebuilt.schema.table)) if row else None
    if entry is None:
        return None, "the lake has no such table"
    if entry.state == "stopped":
        return None, f"the lake's table was stopped at cut {row.cut if row else 0}"
    try:
        if open_table(entry.path) is None or entry.version < 0:
            return None, "the lake's table is gone"
        at_cut = store.read(session, entry.path, entry.version)
        return likeness(store.read(session, rebuilt.path), at_cut, rebuilt.schema), ""
    except (DeltaError, PySparkException, Py4JJavaError):
        return None, f"version {entry.version} of the lake's table cannot be read any more"
