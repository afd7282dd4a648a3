"""Rebuilds a table as it was at a cut to a path of its own, whether the job runs or not."""

import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from deltalake.exceptions import DeltaError
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from cdc.apply.difference.likeness import Likeness, likeness
from cdc.apply.table.applied_table import AppliedTable
from cdc.client.read.published import cut_at
from cdc.config import Config
from cdc.errors import CdcError, ErrorKind
from cdc.events.schema import TableSchema
from cdc.kafka.registry_client import RegistryClient
from cdc.lake.layout import is_local, ledger_path, readings_path, table_path
from cdc.lake.records.ledger import Ledger, LedgerRow
from cdc.lake.records.quarantine import Quarantine
from cdc.lake.records.readings import Reading, Readings, readings_at
from cdc.lake.session import build
from cdc.lake.table import store
from cdc.lake.table.positions import open_table
from cdc.operations.desk.context import RebuildContext
from cdc.operations.replay.inputs import (
    ReplayEnd,
    end_at_cut,
    from_kafka,
    from_log,
    rebuild_from_kafka,
)
from cdc.operations.replay.rebuild import rebuild_table
from cdc.source.connector import worker_rest
from cdc.stack.artifacts.lock_file import spark_jars
from cdc.state.directory import StateDir, read_json
from cdc.tables import TableId

KAFKA: Final = "kafka"
Say = Callable[[str], None]
"""Called with a line about what is being done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What lies at the path now, and whether the lake's table was the same at that cut."""

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
    """What to rebuild, where, from what, and as of which cut."""

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
    spark = build(config, spark_jars())
    try:
        with _scratch(config) as folder:
            context = RebuildContext(
                session=spark.newSession(),
                config=config,
                schemas_of=RegistryClient(addresses.registry).schemas,
                placeholder=placeholder,
                quarantine=Quarantine(f"{folder}/quarantine"),
            )
            return _replayed(context, addresses, options, row, folder=folder, say=say)
    finally:
        spark.stop()


def refuse_taken(path: str) -> None:
    """Raise CONFIG for a local path that exists."""
    if is_local(path) and Path(path).exists():
        raise CdcError(
            ErrorKind.CONFIG,
            f"--into {path}: this path exists already",
            remedy="name a path that does not exist",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """The servers that a replay needs: never the source, Connect only for the placeholder."""

    kafka: str | None
    registry: str
    connect: str | None

    @classmethod
    def of(cls, config: Config) -> "Addresses":
        """Return the configured addresses, else those of the servers that ``up`` started.

        Raises UNREACHABLE where the schema registry's address is unknown.
        """
        started = read_json(StateDir(config.state_dir).endpoints_file) or {}
        registry = config.registry.url or started.get("registry")
        if not registry:
            raise _unknown("the schema registry", "registry.url")
        return cls(
            kafka=config.kafka.bootstrap_servers or started.get("kafka"),
            registry=registry.rstrip("/"),
            connect=config.connect.url or started.get("connect"),
        )

    def placeholder(self, config: Config) -> str:
        """Return what the connector sends for a large value that did not change.

        It is never guessed: with a wrong one, placeholders would be applied as values. Raises
        CONFIG where neither the state directory nor the connector has it.
        """
        file = StateDir(config.state_dir).secrets / "placeholder"
        if file.exists():
            return file.read_text()
        connector = worker_rest.configuration(self.connect, config.name) if self.connect else None
        if connector and connector.get(worker_rest.PLACEHOLDER):
            return connector[worker_rest.PLACEHOLDER]
        raise CdcError(
            ErrorKind.CONFIG,
            "the placeholder of unchanged values is not known on this machine",
            remedy=f"copy the file secrets/{file.name} of the pipeline's state_dir to {file}",
        )


def _unknown(server: str, key: str) -> CdcError:
    return CdcError(
        ErrorKind.UNREACHABLE, f"the address of {server} is not configured", remedy=f"set {key}"
    )


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


@contextmanager
def _scratch(config: Config) -> Iterator[str]:
    folder = config.state_dir / "scratch" / f"replay-{uuid.uuid4().hex}"
    try:
        yield str(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _replayed(
    context: RebuildContext,
    addresses: Addresses,
    options: ReplayOptions,
    row: LedgerRow | None,
    *,
    folder: str,
    say: Say,
) -> Outcome:
    started = time.monotonic()
    rebuilt = _rebuilt(context, addresses, options, row, folder=folder, say=say)
    seconds = time.monotonic() - started
    say("comparing with the lake")
    likeness, why_not = compare_with_cut(context.session, rebuilt, row)
    rows = likeness.rows if likeness else store.read(context.session, rebuilt.path).count()
    return Outcome(
        table=str(options.table),
        path=options.path,
        events_from=options.events_from,
        cut=row.cut if row else None,
        offset=rebuilt.position.offset,
        rows=rows,
        events=rebuilt.position.rows_applied,
        refused=rebuilt.position.refused,
        seconds=seconds,
        likeness=likeness,
        not_compared=why_not,
    )


def _rebuilt(
    context: RebuildContext,
    addresses: Addresses,
    options: ReplayOptions,
    row: LedgerRow | None,
    *,
    folder: str,
    say: Say,
) -> AppliedTable:
    table = options.table
    end: ReplayEnd | None = end_at_cut(row, table) if row else None
    readings = _readings(context.config, row, table)
    known = _lake_schema(context, table)

    def tell(events: int) -> None:
        say(f"applying the {options.events_from}: {events:,} events")

    if options.events_from == KAFKA:
        if not addresses.kafka:
            raise _unknown("Kafka", "kafka.bootstrap_servers")
        say(f"reading topic {table.topic(context.config.name)}")
        copy = partial(from_kafka, folder=folder, readings=readings, known=known)
        topics = copy(context, addresses.kafka, table, end)
        return rebuild_from_kafka(context, topics, table, options.path, point=_go_on, tell=tell)
    assert end is not None  # noqa: S101 - without a cut, _cut has refused a replay from the log
    say("reading the log")
    material = from_log(context, table, end, readings=readings, known=known)
    rebuild = partial(rebuild_table, upto=end.upto, epoch=end.epoch, tell=tell)
    return rebuild(context.session, material, table, options.path)


def _go_on() -> None:
    """Do nothing at a safe point: only the terminal can pause this process."""


def _readings(config: Config, row: LedgerRow | None, table: TableId) -> list[Reading]:
    if row is None:
        return []
    return readings_at(Readings(readings_path(config)).of(str(table)), row, str(table))


def _lake_schema(context: RebuildContext, table: TableId) -> TableSchema | None:
    try:
        return store.read_schema(context.session, table_path(context.config, table), table)
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
