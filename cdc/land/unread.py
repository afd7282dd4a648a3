"""Reads landings back from the log without Spark, whose first job would delay a start by seconds.

They are the ones that a job left to its successor: landed, and not wholly inside a published cut.
"""

from dataclasses import replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, QueryBuilder

from cdc.lake.table.positions import landed_position
from cdc.land.arrow_rows import LOG_SCHEMA
from cdc.land.landing import Landing, TopicSpan
from cdc.land.small_batches import MOST_BYTES, MOST_RECORDS

_SUMMARY: Final = """
SELECT landing, topic, max("offset") AS last, count(*) AS count,
       array_agg(DISTINCT value_schema_id) AS schema_ids
  FROM log WHERE landing > {floor:d} GROUP BY landing, topic
"""
_ROWS: Final = "SELECT {columns} FROM log WHERE landing > {floor:d}"


def landings_beyond(path: str, floor: int) -> list[Landing]:
    """Return the landings in the log at ``path`` with a number above ``floor``, in order.

    Their events come with them where they are few. No data file is opened if there is no such
    landing. Raises CHAIN_BROKEN if the log's newest commit is not ours.
    """
    landed = landed_position(path)
    if landed is None or landed.landing <= floor:
        return []
    log = DeltaTable(path)
    found = _landings(pa.table(_ask(log, _SUMMARY.format(floor=floor)).read_all()))
    if sum(landing.count for landing in found) > MOST_RECORDS:
        return found
    rows = _rows(log, floor)
    return found if rows is None else [replace(one, events=_of(one, rows)) for one in found]


def _ask(log: DeltaTable, question: str) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_stream(QueryBuilder().register("log", log).execute(question))


def _landings(rows: pa.Table) -> list[Landing]:
    spans: dict[int, dict[str, TopicSpan]] = {}
    for row in rows.to_pylist():
        spans.setdefault(row["landing"], {})[row["topic"]] = TopicSpan(
            last=row["last"],
            count=row["count"],
            schema_ids=frozenset(number for number in row["schema_ids"] if number is not None),
        )
    return [Landing(number=number, topics=topics) for number, topics in sorted(spans.items())]


def _rows(log: DeltaTable, floor: int) -> pa.Table | None:
    """Return the rows of the landings; None if they are too large to be in memory."""
    columns = ", ".join(f'"{name}"' for name in LOG_SCHEMA.names)
    batches, size = [], 0
    for batch in _ask(log, _ROWS.format(columns=columns, floor=floor)):
        size += batch.nbytes
        if size > MOST_BYTES:
            return None
        batches.append(batch)
    return pa.Table.from_batches(batches).cast(LOG_SCHEMA)


def _of(landing: Landing, rows: pa.Table) -> pa.Table:
    """Return the rows of one landing, by topic and offset as they are in memory after landing."""
    mine = rows.filter(pc.field("landing") == landing.number)
    return mine.sort_by([("topic", "ascending"), ("offset", "ascending")])
