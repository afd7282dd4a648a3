"""Brings a history to what a reading of its table has found, all at the reading's LSN."""

from dataclasses import dataclass
from typing import Final

from cdc.derive.engine.input import Input
from cdc.derive.engine.inputs import rows
from cdc.derive.history.history import (
    COMMIT_EPOCH,
    COMMIT_LSN,
    EPOCH,
    FROM,
    FROM_LSN,
    OP,
    OWN,
    TO,
    TO_LSN,
    VALID_FROM,
    VALID_LSN,
    VALID_TO,
)
from cdc.derive.history.versions import Moment
from cdc.derive.history_step.store import NOW, VERSIONS, VersionStore, end, moment
from cdc.events.values.sql_text import postgres_name
from cdc.lake.records.readings import Reading
from cdc.lake.table.merge_plan import DELETED

_READ: Final = "wal2lake_read"


@dataclass(frozen=True, slots=True, kw_only=True)
class Beginning:
    """Says where the versions of a reading begin."""

    at: Moment
    epoch: int
    since: int  # the LSN from which on they are taken
    after: tuple[int, int]
    """Epoch and LSN at which a version has ended whose row is not inserted again."""


def take_reading(
    store: VersionStore, reading: Reading, track: tuple[str, ...], begin: Beginning
) -> None:
    """End the versions that the reading has otherwise, or not, and begin those that it has.

    Untracked columns take its values. When the source changed is not known, so the versions have no
    times.
    """
    store.load_all()
    _load(store, reading)
    key = _all_equal("r", "v", store.schema.key)
    found = f"SELECT 1 FROM {_READ} AS r WHERE {key} AND NOT r.{DELETED}"  # noqa: S608
    alike = f"{found} AND {_all_equal('r', 'v', track or store.schema.names)}"
    mentioned = f"EXISTS (SELECT 1 FROM {_READ} AS r WHERE {key})"  # noqa: S608
    ended = f"NOT EXISTS ({alike})" if reading.whole else f"{mentioned} AND NOT EXISTS ({alike})"
    end(store.database, ended, begin.at, begin.epoch)
    _renew(store, key)
    _begin(store, key, begin)
    store.database.run(f"DROP TABLE {_READ}")


def _load(store: VersionStore, reading: Reading) -> None:
    opened = Input(reading.path, reading.version).open()
    deleted = [] if reading.whole else [DELETED]
    store.database.keep(_READ, rows(opened, [*store.schema.names, *deleted]))
    if reading.whole:
        store.database.run(f"ALTER TABLE {_READ} ADD COLUMN {DELETED} BOOLEAN DEFAULT false")


def _renew(store: VersionStore, key: str) -> None:
    """Give the rows of now the values that were read."""
    values = ", ".join(f"{n} = r.{n}" for n in map(postgres_name, store.schema.names))
    joined = f"FROM {_READ} AS r WHERE {NOW} AND {key} AND NOT r.{DELETED}"
    store.database.run(f"UPDATE {VERSIONS} AS v SET {values} {joined}")  # noqa: S608


def _begin(store: VersionStore, key: str, begin: Beginning) -> None:
    epoch, lsn = begin.after
    old = f"SELECT * FROM {VERSIONS} WHERE {EPOCH} = {epoch:d} AND {TO_LSN} = {lsn:d}"  # noqa: S608
    same = _all_equal("r", "e", store.schema.key)
    own = {
        FROM_LSN: f"{begin.at.lsn:d}",
        TO_LSN: "NULL",
        FROM: "NULL",
        TO: "NULL",
        OP: "'r'",
        EPOCH: f"{begin.epoch:d}",
        VALID_LSN: f"{begin.since:d}",
        VALID_FROM: moment(begin.at.clock),
        VALID_TO: "NULL",
        COMMIT_EPOCH: f"coalesce(e.{COMMIT_EPOCH}, {begin.epoch:d})",
        COMMIT_LSN: f"coalesce(e.{COMMIT_LSN}, {begin.at.lsn:d})",
    }
    names = ", ".join(f"r.{n}" for n in map(postgres_name, store.schema.names))
    made = ", ".join(f"CAST({own[name]} AS {kind}) AS {name}" for name, kind in OWN.items())
    there = f"SELECT 1 FROM {VERSIONS} AS v WHERE {NOW} AND {key}"  # noqa: S608
    source = f"{_READ} AS r LEFT JOIN ({old}) AS e ON {same}"
    new = f"SELECT {names}, {made} FROM {source} WHERE NOT r.{DELETED} AND NOT EXISTS ({there})"  # noqa: S608
    store.database.run(f"INSERT INTO {VERSIONS} BY NAME {new}")


def _all_equal(one: str, other: str, names: tuple[str, ...]) -> str:
    quoted = map(postgres_name, names)
    return " AND ".join(f"{one}.{n} IS NOT DISTINCT FROM {other}.{n}" for n in quoted)
