"""Brings a history to what a reading of its table has found, all at the reading's LSN."""

from typing import Final

from cdc.derive.engine.inputs import Input, rows
from cdc.derive.history.history import EPOCH, FROM, FROM_LSN, OP, OWN, TO, TO_LSN
from cdc.derive.history.versions import Moment
from cdc.derive.history_step.store import NOW, VERSIONS, VersionStore, end
from cdc.events.values.sql_text import postgres_name
from cdc.lake.records.readings import Reading
from cdc.lake.table.merge_plan import DELETED

_READ: Final = "wal2lake_read"


def take_reading(store: VersionStore, reading: Reading, track: tuple[str, ...]) -> None:
    """End the versions that the reading has otherwise, or not, and begin those that it has.

    Untracked columns take its values. When the source changed is not known, so the versions have no
    times.
    """
    store.load_all()
    _load(store, reading)
    at, epoch = Moment(reading.lsn), reading.position.epoch
    key = _all_equal("r", "v", store.schema.key)
    found = f"SELECT 1 FROM {_READ} AS r WHERE {key} AND NOT r.{DELETED}"  # noqa: S608
    alike = f"{found} AND {_all_equal('r', 'v', track or store.schema.names)}"
    mentioned = f"EXISTS (SELECT 1 FROM {_READ} AS r WHERE {key})"  # noqa: S608
    ended = f"NOT EXISTS ({alike})" if reading.whole else f"{mentioned} AND NOT EXISTS ({alike})"
    end(store.database, ended, at, epoch)
    _renew(store, key)
    _begin(store, key, at, epoch)
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


def _begin(store: VersionStore, key: str, at: Moment, epoch: int) -> None:
    own = {FROM_LSN: f"{at.lsn:d}", TO_LSN: "NULL", FROM: "NULL", TO: "NULL"}
    own |= {OP: "'r'", EPOCH: f"{epoch:d}"}
    names = ", ".join(f"r.{n}" for n in map(postgres_name, store.schema.names))
    made = ", ".join(f"CAST({own[name]} AS {kind}) AS {name}" for name, kind in OWN.items())
    there = f"SELECT 1 FROM {VERSIONS} AS v WHERE {NOW} AND {key}"  # noqa: S608
    new = f"SELECT {names}, {made} FROM {_READ} AS r WHERE NOT r.{DELETED} AND NOT EXISTS ({there})"  # noqa: S608
    store.database.run(f"INSERT INTO {VERSIONS} BY NAME {new}")


def _all_equal(one: str, other: str, names: tuple[str, ...]) -> str:
    quoted = map(postgres_name, names)
    return " AND ".join(f"{one}.{n} IS NOT DISTINCT FROM {other}.{n}" for n in quoted)
