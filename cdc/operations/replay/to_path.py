"""A table as it was at a cut, rebuilt to a place of its own; the job may run or not."""

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
from cdc.kafka.registry import RegistryClient
from cdc.lake.layout import is_local, ledger_path, readings_path, table_path
from cdc.lake.records.ledger import Ledger, LedgerRow
from cdc.lake.records.quarantine import Quarantine
from cdc.lake.records.readings import Reading, Readings, readings_at
from cdc.lake.session import build
from cdc.lake.table import store
from cdc.lake.table.positions import open_table
from cdc.operations.desk.context import Kept
from cdc.operations.replay.inputs import Place, from_kafka, from_log, place_of, rebuilt_from_kafka
from cdc.operations.replay.rebuild import rebuilt
from cdc.source.connector import worker_rest
from cdc.stack.artifacts.lock_file import spark_jars
from cdc.state.directory import StateDir, read_json
from cdc.tables import TableId

KAFKA: Final = "kafka"
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What lies at the path now, and whether the lake's table was the same at that cut."""

    table: str
    path: str
    marker: str  # log or kafka
    cut: int | None  # None: the end of the topics
    offset: int
    rows: int
    events: int
    refused: int
    seconds: float  # of taking the events and applying them
    likeness: Likeness | None
    not_compared: str = ""  # why

    @property
    def rate(self) -> float:
        return self.rows / self.seconds if self.seconds else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """``at`` names a cut (cdc/client/read/at.py); None: the newest one."""

    table: TableId
    path: str
    marker: str
    at: str | None


def replay_into(config: Config, asked: Asked, *, say: Say) -> Outcome:
    """Rebuild the table to ``path``; raises CONFIG where something is there already."""
    refuse_taken(asked.path)
    row = _cut(config, asked)
    addresses = Addresses.of(config)
    placeholder = addresses.placeholder(config)
    spark = build(config, spark_jars())
    try:
        with _scratch(config) as folder:
            kept = Kept(
                session=spark.newSession(),
                config=config,
                schemas_of=RegistryClient(addresses.registry).schemas,
                placeholder=placeholder,
                quarantine=Quarantine(f"{folder}/quarantine"),
            )
            return _replayed(kept, addresses, asked, row, folder=folder, say=say)
    finally:
        spark.stop()


def refuse_taken(path: str) -> None:
    """Raises CONFIG for a local path at which something is."""
    if is_local(path) and Path(path).exists():
        raise CdcError(
            ErrorKind.CONFIG,
            f"--into {path}: something is there already",
            remedy="name a path at which nothing is",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """The servers that a replay needs: no source, and Connect only for an unknown placeholder."""

    kafka: str | None
    registry: str
    connect: str | None

    @classmethod
    def of(cls, config: Config) -> "Addresses":
        known = read_json(StateDir(config.state_dir).endpoints_file) or {}
        registry = config.registry.url or known.get("registry")
        if not registry:
            raise _unknown("the schema registry", "registry.url")
        return cls(
            kafka=config.kafka.bootstrap_servers or known.get("kafka"),
            registry=registry.rstrip("/"),
            connect=config.connect.url or known.get("connect"),
        )

    def placeholder(self, config: Config) -> str:
        """What stands for a value that did not change; a wrong one would be taken for a value."""
        kept = StateDir(config.state_dir).secrets / "placeholder"
        if kept.exists():
            return kept.read_text()
        found = worker_rest.configuration(self.connect, config.name) if self.connect else None
        if found and found.get(worker_rest.PLACEHOLDER):
            return found[worker_rest.PLACEHOLDER]
        raise CdcError(
            ErrorKind.CONFIG,
            "what stands for an unchanged value in the events is not known on this machine",
            remedy=f"copy the file secrets/{kept.name} of the pipeline's state_dir to {kept}",
        )


def _unknown(what: str, key: str) -> CdcError:
    return CdcError(ErrorKind.UNREACHABLE, f"nobody said where {what} is", remedy=f"set {key}")


def _cut(config: Config, asked: Asked) -> LedgerRow | None:
    """None where the lake has no ledger, which only Kafka can do without."""
    row = cut_at(Ledger(ledger_path(config)), asked.at)
    if row is None and asked.marker != KAFKA:
        raise CdcError(
            ErrorKind.CONFIG,
            f"the lake at {config.lake.path} has no cut",
            remedy="correct lake.path; or rebuild it from the topics: --from kafka",
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
    kept: Kept, addresses: Addresses, asked: Asked, row: LedgerRow | None, *, folder: str, say: Say
) -> Outcome:
    started = time.monotonic()
    made = _made(kept, addresses, asked, row, folder=folder, say=say)
    seconds = time.monotonic() - started
    say("comparing with the lake")
    found, why_not = compared(kept.session, made, row)
    rows = found.rows if found else store.read(kept.session, made.path).count()
    return Outcome(
        table=str(asked.table),
        path=asked.path,
        marker=asked.marker,
        cut=row.cut if row else None,
        offset=made.position.offset,
        rows=rows,
        events=made.position.rows_applied,
        refused=made.position.refused,
        seconds=seconds,
        likeness=found,
        not_compared=why_not,
    )


def _made(
    kept: Kept, addresses: Addresses, asked: Asked, row: LedgerRow | None, *, folder: str, say: Say
) -> AppliedTable:
    table = asked.table
    place: Place | None = place_of(row, table) if row else None
    readings = _readings(kept.config, row, table)
    known = _known(kept, table)

    def tell(events: int) -> None:
        say(f"applying the {asked.marker}: {events:,} events")

    if asked.marker == KAFKA:
        if not addresses.kafka:
            raise _unknown("Kafka", "kafka.bootstrap_servers")
        say(f"reading topic {table.topic(kept.config.name)}")
        take = partial(from_kafka, folder=folder, readings=readings, known=known)
        topics = take(kept, addresses.kafka, table, place)
        return rebuilt_from_kafka(kept, topics, table, asked.path, point=_go_on, tell=tell)
    assert place is not None  # noqa: S101 - the log has a ledger beside it
    say("reading the log")
    material = from_log(kept, table, place, readings=readings, known=known)
    begin = partial(rebuilt, upto=place.upto, epoch=place.epoch, tell=tell)
    return begin(kept.session, material, table, asked.path)


def _go_on() -> None:
    """Nobody can pause this process but its terminal."""


def _readings(config: Config, row: LedgerRow | None, table: TableId) -> list[Reading]:
    if row is None:
        return []
    return readings_at(Readings(readings_path(config)).of(str(table)), row, str(table))


def _known(kept: Kept, table: TableId) -> TableSchema | None:
    try:
        return store.read_schema(kept.session, table_path(kept.config, table), table)
    except (DeltaError, PySparkException, Py4JJavaError, KeyError):
        return None  # there is none that can be read, and a note may say more


def compared(
    session: SparkSession, made: AppliedTable, row: LedgerRow | None
) -> tuple[Likeness | None, str]:
    """With the live table at the version of the cut; or why that cannot be."""
    entry = row.entry(str(made.schema.table)) if row else None
    if entry is None:
        return None, "the lake has no such table"
    if entry.state == "stopped":
        return None, f"the lake's table was stopped at cut {row.cut if row else 0}"
    try:
        if open_table(entry.path) is None or entry.version < 0:
            return None, "the lake's table is not there"
        held = store.read(session, entry.path, entry.version)
        return likeness(store.read(session, made.path), held, made.schema), ""
    except (DeltaError, PySparkException, Py4JJavaError):
        return None, f"version {entry.version} of the lake's table cannot be read any more"
