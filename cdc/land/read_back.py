"""Reads a few events back from the log without Spark, whose every job would delay what waits.

A start reads the landings that the last job left behind, a round the events of a table that comes
back from an operation, and those of tables with few events that have landed beside many of another.
"""

from collections.abc import Collection
from dataclasses import replace
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, QueryBuilder

from cdc.events.values.sql_text import fusion_string
from cdc.lake.files.delta import delta_table
from cdc.lake.table.positions import landed_position
from cdc.land.arrow_rows import LOG_SCHEMA
from cdc.land.landing import Landing, TopicSpan
from cdc.land.small_batches import MOST_BYTES, MOST_RECORDS

_SUMMARY: Final = """
SELECT landing, topic, max("offset") AS last, count(*) AS count,
       array_agg(DISTINCT value_schema_id) AS schema_ids
  FROM log WHERE landing > {floor:d} GROUP BY landing, topic
"""
_ROWS: Final = "SELECT {columns} FROM log WHERE {condition}"
_LAST: Final = 'SELECT max("offset") AS last FROM log WHERE topic = {topic} AND landing <= {upto:d}'


def landings_beyond(path: str, floor: int) -> list[Landing]:
    """Return the landings in the log at ``path`` with a number above ``floor``, in order.

    Their events come with them where they are few. No data file is opened if there is no such
    landing. Raises CHAIN_BROKEN if the log's newest commit is not ours.
    """
    landed = landed_position(path)
    if landed is None or landed.landing <= floor:
        return []
    log = delta_table(path)
    found = _landings(pa.table(ask(log, _SUMMARY.format(floor=floor)).read_all()))
    if sum(landing.count for landing in found) > MOST_RECORDS:
        return found
    rows = rows_where(log, f"landing > {floor:d}", MOST_BYTES)
    return found if rows is None else [replace(one, events=_of(one, rows)) for one in found]


def events_of(path: str, topic: str, after: int, upto: int, *, most: int) -> pa.Table | None:
    """Return the log's rows of a topic beyond one offset, up to another, by offset.

    Returns None if there may be more than ``most`` of them, or if they are too large to be in
    memory; offsets that no event has count too.
    """
    if upto - after > min(most, MOST_RECORDS):
        return None
    rows = rows_where(delta_table(path), inside(topic, after, upto), MOST_BYTES)
    return None if rows is None else rows.sort_by("offset")


def rows_of_topics(path: str, first: int, last: int, topics: Collection[str]) -> pa.Table | None:
    """Return the log's rows of some topics in the landings from one number to another.

    By topic and offset, as they are in memory after landing. Returns None if they are too large to
    be in memory.
    """
    listed = ", ".join(map(fusion_string, sorted(topics)))
    condition = f"landing BETWEEN {first:d} AND {last:d} AND topic IN ({listed})"
    rows = rows_where(delta_table(path), condition, MOST_BYTES)
    return None if rows is None else rows.sort_by([("topic", "ascending"), ("offset", "ascending")])


def inside(topic: str, after: int, upto: int) -> str:
    """Return the condition of SQL that a row of the log is of a topic, between two offsets."""
    return f'topic = {fusion_string(topic)} AND "offset" > {after:d} AND "offset" <= {upto:d}'


def last_offset(path: str, topic: str, upto: int) -> int:
    """Return the last offset of a topic in landings up to number ``upto``; -1 for none."""
    question = _LAST.format(topic=fusion_string(topic), upto=upto)
    last = ask(delta_table(path), question).read_all()["last"][0].as_py()
    return -1 if last is None else int(last)


def ask(log: DeltaTable, question: str) -> pa.RecordBatchReader:
    """Return the answer to a question in SQL about the table ``log``, as a stream."""
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


def rows_where(log: DeltaTable, condition: str, most_bytes: int) -> pa.Table | None:
    """Return the rows of the log; None if they are larger than ``most_bytes`` in memory."""
    columns = ", ".join(f'"{name}"' for name in LOG_SCHEMA.names)
    batches, size = [], 0
    for batch in ask(log, _ROWS.format(columns=columns, condition=condition)):
        size += batch.nbytes
        if size > most_bytes:
            return None
        batches.append(batch)
    return pa.Table.from_batches(batches).cast(LOG_SCHEMA) if batches else LOG_SCHEMA.empty_table()


def _of(landing: Landing, rows: pa.Table) -> pa.Table:
    """Return the rows of one landing, by topic and offset as they are in memory after landing."""
    mine = rows.filter(pc.field("landing") == landing.number)
    return mine.sort_by([("topic", "ascending"), ("offset", "ascending")])
