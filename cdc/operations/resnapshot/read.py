"""The rows of one table at one moment, from the source into the lake, beside the table itself."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from psycopg import sql
from pyspark.sql import DataFrame, SparkSession

from cdc.apply.difference import row_difference
from cdc.client.moment import Moment
from cdc.errors import CdcError, ErrorKind
from cdc.events.structure.structure import StructureColumn
from cdc.events.values.sql_text import spark_name
from cdc.lake.records.quarantine import RefusedEvent
from cdc.lake.table.merge_plan import REASON
from cdc.operations.desk.reporter import Reporter
from cdc.operations.resnapshot.target import Described
from cdc.operations.resnapshot.values import key_texts, typed
from cdc.source.predicate.predicate import Predicate
from cdc.source.rows import reading
from cdc.tables import TableId

MOST_REFUSED: Final = 100_000
"""Rows of a reading that are put into quarantine; with more of them nothing is changed."""
_ROW_NUMBERS: Final = 1 << 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """``rows`` have the columns of the lake's table.

    ``part`` is what of the lake's table they stand for, None for all of it.
    """

    rows: DataFrame
    refused: DataFrame  # rows with a reason
    part: DataFrame | None
    rows_read: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Reads one table; what it reads lies under ``folder`` until it is taken."""

    spark: SparkSession
    moment: Moment
    described: Described
    table: TableId
    folder: str
    reporter: Reporter

    def whole(self) -> Staged:
        """All rows."""
        found = self._read(None)
        return self._staged([self._typed("texts")], None, found)

    def within(self, predicate: Predicate, held: DataFrame) -> Staged:
        """The rows inside the predicate, and those that are inside it in the lake alone."""
        found = self._read(sql.SQL(predicate.source))
        inside, rows = held.where(predicate.lake), self._typed("texts")
        if not self.described.schema.key:
            return self._staged([rows], inside, found)
        schema = self.described.schema
        keys = row_difference.keys_of(rows, schema)
        alone = row_difference.keys_of(row_difference.at_other_keys(inside, keys, schema), schema)
        found += self._read_keys("moved", alone)
        part = row_difference.at_keys(held, keys.union(alone), schema)
        return self._staged([rows, self._typed("moved")], part, found)

    def of_keys(self, keys: Sequence[Sequence[str]], held: DataFrame) -> Staged:
        """The rows of some keys, given as the texts that Postgres reads."""
        columns = [f"c{number} string" for number in range(len(self._key))]
        asked = self.spark.createDataFrame([tuple(key) for key in keys], ", ".join(columns))
        named = self._key_columns()
        values = typed(asked, [c.column for c in named], [c.pg for c in named])
        found = self._keys_read("texts", dict.fromkeys(map(tuple, keys)))
        schema = self.described.schema
        part = row_difference.at_keys(held, row_difference.keys_of(values, schema), schema)
        return self._staged([self._typed("texts")], part, found)

    @property
    def _key(self) -> list[str]:
        return list(self.described.schema.key)

    def _key_columns(self) -> list[StructureColumn]:
        """In the order of the key."""
        by_name = {column.name: column for column in self.described.structure.followed}
        return [by_name[name] for name in self._key]

    def _read(self, where: sql.Composable | None) -> int:
        return reading.read(
            self.moment.connection,
            self.table,
            self.described.columns,
            f"{self.folder}/texts",
            where=where,
            tell=self._tell,
        ).rows

    def _read_keys(self, name: str, keys: DataFrame) -> int:
        named = self._key_columns()
        found = key_texts(keys, [c.column for c in named], [c.pg for c in named])
        # A partition at a time; a lake that holds a key twice would have it read twice.
        return self._keys_read(name, map(tuple, found.distinct().toLocalIterator()))

    def _keys_read(self, name: str, keys: Iterable[Sequence[str]]) -> int:
        return reading.read_keys(
            self.moment.connection,
            self.table,
            self.described.columns,
            self._key,
            keys,
            f"{self.folder}/{name}",
            tell=self._tell,
        ).rows

    def _tell(self, chunks: int, rows: int, _bytes: int) -> None:
        self.reporter.tell(chunks=chunks, rows=rows)
        self.reporter.point()

    def _typed(self, name: str) -> DataFrame:
        texts = self.spark.read.format("delta").load(f"{self.folder}/{name}")
        columns = self.described.structure.followed
        return typed(texts, [c.column for c in columns], [c.pg for c in columns])

    def _staged(self, parts: Sequence[DataFrame], held: DataFrame | None, rows_read: int) -> Staged:
        every = parts[0]
        for part in parts[1:]:
            every = every.unionByName(part)
        names = list(map(spark_name, self.described.schema.names))
        return Staged(
            rows=every.where(f"{REASON} IS NULL").selectExpr(*names),
            refused=every.where(f"{REASON} IS NOT NULL"),
            part=held,
            rows_read=rows_read,
        )


def refused_events(
    staged: Staged, described: Described, topic: str, number: int
) -> list[RefusedEvent]:
    """The rows that the lake cannot hold, as entries of the quarantine.

    No message holds them: in the place of an offset stands a number below zero, by reading and row.
    """
    key = list(described.schema.key)
    named = staged.refused.selectExpr(*map(spark_name, key), REASON)
    rows = named.limit(MOST_REFUSED + 1).collect()
    if len(rows) > MOST_REFUSED:
        raise CdcError(
            ErrorKind.TABLE_STOPPED,
            f"more than {MOST_REFUSED:,} rows of {described.schema.table} hold what the lake "
            f"cannot: {rows[0][REASON]}",
            remedy="keep the column as text: name it in source.as_text; then read the table again",
        )
    now = datetime.now(UTC)
    return [
        RefusedEvent(
            table=str(described.schema.table),
            topic=topic,
            partition=-1,
            offset=-(number * _ROW_NUMBERS) - place,
            key=json.dumps({name: _text(row[name]) for name in key}).encode(),
            value=None,
            value_schema_id=None,
            reason=row[REASON],
            quarantined_at=now,
        )
        for place, row in enumerate(rows, start=1)
    ]


def counted(spark: SparkSession, path: str) -> dict[str, int]:
    """Rows of a difference, by kind."""
    rows = spark.read.format("delta").load(path).groupBy(row_difference.KIND).count().collect()
    return {row[row_difference.KIND]: row["count"] for row in rows}


def _text(value: Any) -> str | None:  # noqa: ANN401 - of any type of the lake
    return None if value is None else str(value)
