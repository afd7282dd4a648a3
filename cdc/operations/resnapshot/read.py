"""Reads the rows of one table at one moment from the source into the lake, beside the table."""

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
from cdc.operations.resnapshot.target import Target
from cdc.operations.resnapshot.values import key_texts, typed
from cdc.source.predicate.predicate import Predicate
from cdc.source.rows import reading
from cdc.tables import TableId

MOST_REFUSED: Final = 100_000
"""The most rows of a reading that are put into quarantine; with more, nothing is changed."""
_ROW_NUMBERS: Final = 1 << 32
"""The numbers that each reading has for its refused rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """Holds what was read, ready to be taken into the lake's table."""

    rows: DataFrame  # in the columns of the lake's table
    refused: DataFrame  # rows that the lake cannot hold, with a reason
    part: DataFrame | None  # the lake's rows that these replace; None: all of them
    rows_read: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Reads one table; the rows lie below ``folder`` until they are taken into the lake."""

    spark: SparkSession
    moment: Moment
    target: Target
    table: TableId
    folder: str
    reporter: Reporter

    def whole(self) -> Staged:
        """Read all rows."""
        rows_read = self._read(None)
        return self._staged([self._typed("texts")], None, rows_read)

    def within(self, predicate: Predicate, held: DataFrame) -> Staged:
        """Read the rows that match the predicate in the source or in the lake (``held``)."""
        rows_read = self._read(sql.SQL(predicate.source))
        inside, rows = held.where(predicate.lake), self._typed("texts")
        if not self.target.schema.key:
            return self._staged([rows], inside, rows_read)
        schema = self.target.schema
        keys = row_difference.keys_of(rows, schema)
        in_lake_alone = row_difference.at_other_keys(inside, keys, schema)
        moved = row_difference.keys_of(in_lake_alone, schema)
        rows_read += self._read_keys("moved", moved)
        part = row_difference.at_keys(held, keys.union(moved), schema)
        return self._staged([rows, self._typed("moved")], part, rows_read)

    def of_keys(self, keys: Sequence[Sequence[str]], held: DataFrame) -> Staged:
        """Read the rows of some keys, given as texts in Postgres's form."""
        texts = [f"c{number} string" for number in range(len(self._key))]
        frame = self.spark.createDataFrame([tuple(key) for key in keys], ", ".join(texts))
        columns = self._key_columns()
        values = typed(frame, [c.column for c in columns], [c.pg for c in columns])
        rows_read = self._keys_read("texts", dict.fromkeys(map(tuple, keys)))
        schema = self.target.schema
        part = row_difference.at_keys(held, row_difference.keys_of(values, schema), schema)
        return self._staged([self._typed("texts")], part, rows_read)

    @property
    def _key(self) -> list[str]:
        return list(self.target.schema.key)

    def _key_columns(self) -> list[StructureColumn]:
        """Return the key's columns in the order of the key."""
        by_name = {column.name: column for column in self.target.structure.followed}
        return [by_name[name] for name in self._key]

    def _read(self, where: sql.Composable | None) -> int:
        return reading.read(
            self.moment.connection,
            self.table,
            self.target.columns,
            f"{self.folder}/texts",
            where=where,
            tell=self._tell,
        ).rows

    def _read_keys(self, name: str, keys: DataFrame) -> int:
        columns = self._key_columns()
        texts = key_texts(keys, [c.column for c in columns], [c.pg for c in columns])
        # One partition at a time. Distinct, as a broken lake may hold a key twice.
        return self._keys_read(name, map(tuple, texts.distinct().toLocalIterator()))

    def _keys_read(self, name: str, keys: Iterable[Sequence[str]]) -> int:
        return reading.read_keys(
            self.moment.connection,
            self.table,
            self.target.columns,
            self._key,
            keys,
            f"{self.folder}/{name}",
            tell=self._tell,
        ).rows

    def _tell(self, chunks: int, rows: int, _bytes: int) -> None:
        self.reporter.tell(chunks=chunks, rows=rows)
        self.reporter.safe_point()

    def _typed(self, name: str) -> DataFrame:
        texts = self.spark.read.format("delta").load(f"{self.folder}/{name}")
        columns = self.target.structure.followed
        return typed(texts, [c.column for c in columns], [c.pg for c in columns])

    def _staged(self, parts: Sequence[DataFrame], held: DataFrame | None, rows_read: int) -> Staged:
        rows = parts[0]
        for part in parts[1:]:
            rows = rows.unionByName(part)
        names = list(map(spark_name, self.target.schema.names))
        return Staged(
            rows=rows.where(f"{REASON} IS NULL").selectExpr(*names),
            refused=rows.where(f"{REASON} IS NOT NULL"),
            part=held,
            rows_read=rows_read,
        )


def refused_events(staged: Staged, target: Target, topic: str, number: int) -> list[RefusedEvent]:
    """Return the rows that the lake cannot hold as entries for the quarantine.

    They come from no Kafka message, so their offset is a negative number made of the number of the
    reading and of the row. Raises TABLE_STOPPED for more than ``MOST_REFUSED`` rows.
    """
    key = list(target.schema.key)
    keys_and_reasons = staged.refused.selectExpr(*map(spark_name, key), REASON)
    rows = keys_and_reasons.limit(MOST_REFUSED + 1).collect()
    refuse_many([row[REASON] for row in rows], target.schema.table)
    texts = [(json.dumps({n: _text(row[n]) for n in key}), row[REASON]) for row in rows]
    return refused_rows(texts, target.schema.table, topic, number)


def refuse_many(reasons: Sequence[str], table: TableId) -> None:
    """Raise TABLE_STOPPED if a reading refuses more than ``MOST_REFUSED`` rows."""
    if len(reasons) > MOST_REFUSED:
        raise CdcError(
            ErrorKind.TABLE_STOPPED,
            f"the lake cannot hold values of more than {MOST_REFUSED:,} rows of {table}: "
            f"{reasons[0]}",
            remedy="name the column in source.as_text to keep it as text, then resnapshot again",
        )


def refused_rows(
    rows: Iterable[tuple[str, str]], table: TableId, topic: str, number: int
) -> list[RefusedEvent]:
    """Return entries for the quarantine, from each row's key, as JSON, and the reason."""
    now = datetime.now(UTC)
    return [
        RefusedEvent(
            table=str(table),
            topic=topic,
            partition=-1,
            offset=-(number * _ROW_NUMBERS) - place,
            key=key.encode(),
            value=None,
            value_schema_id=None,
            reason=reason,
            quarantined_at=now,
        )
        for place, (key, reason) in enumerate(rows, start=1)
    ]


def newest_number(events: Iterable[RefusedEvent]) -> int:
    """Return the highest number of a reading that any of the events comes from; 0 for none."""
    return max((-event.offset // _ROW_NUMBERS for event in events if event.offset < 0), default=0)


def count_by_kind(spark: SparkSession, path: str) -> dict[str, int]:
    """Count the rows of a difference, by kind."""
    rows = spark.read.format("delta").load(path).groupBy(row_difference.KIND).count().collect()
    return {row[row_difference.KIND]: row["count"] for row in rows}


def _text(value: Any) -> str | None:  # noqa: ANN401 - of any type of the lake
    return None if value is None else str(value)
