"""Keeps the versions that a step changes in DuckDB, which has room on the disk for many."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import pyarrow as pa
from deltalake import DeltaTable

from cdc.apply.local.arrow import table_of
from cdc.apply.local.change import Key
from cdc.apply.local.identity import key_of
from cdc.derive.engine.calculator import Calculator
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
from cdc.derive.history.versions import Moment, Version
from cdc.derive.log.event import Row
from cdc.events.schema import TableSchema
from cdc.events.values.sql_text import fusion_name, fusion_string, postgres_name
from cdc.lake.table.merge_plan import COPY, ROW_HASH
from cdc.lake.table.plain_values import plain_values

VERSIONS: Final = "wal2lake_versions"
"""The versions that were stored when the step began and may change, and those that it makes."""
LOADED: Final = "wal2lake_loaded"
"""The digests and copies of the stored ones among them."""
NOW: Final = f"{TO_LSN} IS NULL"
_KEYS: Final = "wal2lake_keys"
_STAGED: Final = "wal2lake_staged"
_LISTED: Final = 1000
"""So many keys are looked for by their values, with the statistics of files."""
_LITERALS: Final[Mapping[str, Callable[[Any], str]]] = {
    **dict.fromkeys(("smallint", "int", "bigint"), "{:d}".format),
    "string": fusion_string,
}
"""Writes a value of a type in delta-rs's SQL; keys of other types are compared here."""
_TYPES: Final = {
    "BIGINT": pa.int64(),
    "VARCHAR": pa.string(),
    "TIMESTAMP WITH TIME ZONE": pa.timestamp("us", "UTC"),
}


@dataclass(kw_only=True)
class VersionStore:
    """Keeps the versions of a history; ``stored`` is its table, None if there is none yet.

    What is asked for is read from there at the first use: the rows of some keys, and then of all.
    """

    database: Calculator
    schema: TableSchema
    stored: DeltaTable | None
    _known: set[Key] = field(default_factory=set)
    _asked: frozenset[Key] | None = None

    def __post_init__(self) -> None:
        self._key_of = key_of(self.schema)
        self._has_all = self.stored is None
        self.database.keep(VERSIONS, self._table([]))
        handles = pa.schema([(ROW_HASH, pa.string()), (COPY, pa.int64())])
        self.database.keep(LOADED, handles.empty_table())

    @property
    def columns(self) -> str:
        """Return the columns of the history, as SQL."""
        return ", ".join([*map(postgres_name, self.schema.names), *OWN])

    def rows(self, keys: Collection[Key]) -> Mapping[Key, Row]:
        """Return the rows of now of these keys."""
        return {key: version.values for key, version in self.of(keys, None).items()}

    def of(self, keys: Collection[Key], ended: Moment | None) -> dict[Key, Version]:
        """Return the versions of now of these keys, or those that ended at a moment."""
        self._load(keys)
        which = NOW if ended is None else f"{TO_LSN} = {ended.lsn:d}"
        with_keys = f"SELECT {self.columns} FROM {VERSIONS} AS v WHERE {which} AND {self._chosen()}"  # noqa: S608
        found = self._versions(self.database.rows(with_keys))
        return {key: one for one in found if (key := self._key_of(one.values)) is not None}

    def replace(self, versions: Iterable[Version], ended: Moment) -> None:
        """Put versions in the place of those that ``of`` returned of the keys asked for last."""
        gone = f"({NOW} OR {TO_LSN} = {ended.lsn:d}) AND {self._chosen()}"
        self.database.run(f"DELETE FROM {VERSIONS} AS v WHERE {gone}")  # noqa: S608
        self.database.add(VERSIONS, self._table(list(versions)))

    def end_all(self, at: Moment, epoch: int) -> None:
        """End every row of now; one that began at the same moment was never there."""
        self.load_all()
        end(self.database, "true", at, epoch)

    def load_all(self) -> None:
        """Have all rows of now here."""
        if self.stored is not None and not self._has_all:
            here = f"SELECT 1 FROM {LOADED} AS l WHERE l.{ROW_HASH} = v.{ROW_HASH}"  # noqa: S608
            self._add(NOW, f"NOT EXISTS ({here})")
            self._has_all = True

    def _load(self, keys: Collection[Key]) -> None:
        """Have the rows of now of these keys here, and of all where more are asked for later."""
        missing = set(keys) - self._known
        if missing and self._known:
            self.load_all()
        if self._asked != frozenset(keys):
            self.database.run(f"DROP TABLE IF EXISTS {_KEYS}")
            self.database.keep(_KEYS, self._keys(keys))
            self._asked = frozenset(keys)
        if missing and not self._has_all:
            self._add(f"{NOW}{self._among(missing)}", self._chosen())
        self._known |= missing

    def _add(self, where: str, condition: str) -> None:
        """Read stored rows that meet a condition of delta-rs's SQL, and then one of DuckDB's."""
        assert self.stored is not None  # noqa: S101 - asked before
        names = [*self.schema.names, *OWN, ROW_HASH, COPY]
        empty = rows(self.stored, names, "LIMIT 0")
        self.database.keep(_STAGED, empty)
        found = rows(self.stored, names, f"WHERE {where}")
        self.database.add_where(_STAGED, found, "v", condition)
        self.database.run(f"INSERT INTO {VERSIONS} BY NAME SELECT {self.columns} FROM {_STAGED}")  # noqa: S608
        self.database.run(f"INSERT INTO {LOADED} SELECT {ROW_HASH}, {COPY} FROM {_STAGED}")  # noqa: S608
        self.database.run(f"DROP TABLE {_STAGED}")

    def _among(self, keys: Collection[Key]) -> str:
        """Return a condition that holds for these keys, and perhaps for others."""
        first = self.schema.key[0]
        kind = self.schema.columns[self.schema.names.index(first)].type
        firsts = {key[0] for key in keys}
        if kind not in _LITERALS or len(firsts) > _LISTED:
            return ""
        listed = ", ".join(map(_LITERALS[kind], firsts))
        return f" AND {fusion_name(first)} IN ({listed})"

    def _chosen(self) -> str:
        """Return the condition that a version is of one of the keys asked for last."""
        same = " AND ".join(f"k.{n} = v.{n}" for n in map(postgres_name, self.schema.key))
        return f"EXISTS (SELECT 1 FROM {_KEYS} AS k WHERE {same})"  # noqa: S608

    def _keys(self, keys: Iterable[Key]) -> pa.Table:
        names, key = self.schema.names, self.schema.key
        found = []
        for one in keys:
            values: list[object] = [None] * len(names)
            for name, part in zip(key, one, strict=True):
                values[names.index(name)] = part
            found.append(values)
        return table_of(self.schema, found, {}, key)

    def _table(self, versions: list[Version]) -> pa.Table:
        own = {
            FROM_LSN: [v.begin.lsn for v in versions],
            TO_LSN: [None if v.end is None else v.end.lsn for v in versions],
            FROM: [v.begin.time for v in versions],
            TO: [None if v.end is None else v.end.time for v in versions],
            OP: [v.op for v in versions],
            EPOCH: [v.epoch for v in versions],
            VALID_LSN: [v.since for v in versions],
            VALID_FROM: [v.begin.clock for v in versions],
            VALID_TO: [None if v.end is None else v.end.clock for v in versions],
            COMMIT_EPOCH: [v.inserted[0] for v in versions],
            COMMIT_LSN: [v.inserted[1] for v in versions],
        }
        arrays = {name: pa.array(values, _TYPES[OWN[name]]) for name, values in own.items()}
        return table_of(self.schema, [v.values for v in versions], arrays)

    def _versions(self, found: pa.Table) -> Iterator[Version]:
        columns = [plain_values(found[name]) for name in self.schema.names]
        values = zip(*columns, strict=True)
        own = found.select(list(OWN)).to_pylist()
        for row, one in zip(values, own, strict=True):
            ended = Moment(one[TO_LSN] or 0, one[TO], one[VALID_TO])
            yield Version(
                values=list(row),
                begin=Moment(one[FROM_LSN], one[FROM], one[VALID_FROM]),
                end=None if one[TO_LSN] is None else ended,
                op=one[OP],
                epoch=one[EPOCH],
                since=one[VALID_LSN],
                inserted=(one[COMMIT_EPOCH], one[COMMIT_LSN]),
            )


def end(database: Calculator, which: str, at: Moment, epoch: int) -> None:
    """End the rows of now that meet a condition about ``v``.

    One that began at the same moment was never there.
    """
    mine = f"{FROM_LSN} = {at.lsn:d} AND {EPOCH} = {epoch:d}"
    database.run(f"DELETE FROM {VERSIONS} AS v WHERE {NOW} AND {mine} AND {which}")  # noqa: S608
    changed = f"{TO_LSN} = {at.lsn:d}, {TO} = {moment(at.time)}, {VALID_TO} = {moment(at.clock)}"
    database.run(f"UPDATE {VERSIONS} AS v SET {changed} WHERE {NOW} AND {which}")  # noqa: S608


def moment(time: datetime | None) -> str:
    """Return a time in SQL."""
    return "NULL" if time is None else f"'{time.isoformat()}'::TIMESTAMPTZ"
