"""A slice of the log: the events that a round looks at, and the transactions in them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows it by

from cdc.apply.changes.decode import decode_envelope, decode_markers
from cdc.apply.rounds.whole_transactions import Span
from cdc.events.transactions import END, Marker, marker
from cdc.events.values.lsn import NO_LSN
from cdc.lake.table.store import read_pinned
from cdc.land.landing import Landing, last_offsets
from cdc.land.log_rows import LogRows


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """Events after the last cut: as many as the round takes."""

    rows: LogRows
    ends: Sequence[Marker]  # END markers, in order
    end_offsets: Mapping[int, int]  # offset of the END marker, by its lsn
    spans: Mapping[str, Mapping[int, Span]]  # by topic and transaction
    last: Mapping[str, int]  # offset of the last event, by topic
    undecodable: frozenset[str]  # topics with an event whose transaction is unknown
    snapshots: Mapping[str, frozenset[int]]  # by topic: lsns (or NO_LSN) of its snapshot events


def read(
    spark: SparkSession, path: str, landings: Sequence[Landing], after: Mapping[str, int]
) -> DataFrame:
    """Return the log's rows of these landings beyond the offsets ``after``, by topic.

    Spark skips the files of other landings.
    """
    numbers = [landing.number for landing in landings]
    beyond = [
        (F.col("topic") == topic) & (F.col("offset") > after.get(topic, -1))
        for topic in last_offsets(landings)
    ]
    rows = read_pinned(spark, path)
    return rows.where(F.col("landing").between(numbers[0], numbers[-1]) & _any(beyond))


def look(
    rows: DataFrame,
    schemas: Mapping[int, str],
    *,
    last: Mapping[str, int],
    marker_topic: str,
    prefix: str,
) -> Slice:
    """Find the transactions in the rows, in two Spark jobs.

    ``last`` has the last landed offset of every topic whose events are awaited, also of topics
    from which nothing landed.
    """
    is_marker = F.col("topic") == marker_topic
    groups = _groups(rows.where(~is_marker & F.col("value").isNotNull()), schemas)
    ends = _ends(rows.where(is_marker), schemas, prefix)
    return Slice(
        rows=LogRows.of(rows),
        ends=[end for _, end in ends],
        end_offsets={end.lsn: offset for offset, end in ends},
        spans=_spans(groups),
        last=last,
        undecodable=frozenset(row["topic"] for row in groups if row["undecodable"]),
        snapshots=_snapshots(groups),
    )


def snapshots(events: DataFrame, schemas: Mapping[int, str]) -> dict[str, frozenset[int]]:
    """Return the lsns of the snapshots among events of the log, by topic, in one Spark job."""
    return _snapshots(_groups(events.where(F.col("value").isNotNull()), schemas))


def _any(conditions: Iterable[Column]) -> Column:
    return reduce(or_, conditions, F.lit(False))  # noqa: FBT003 - a literal column


def _ends(markers: DataFrame, schemas: Mapping[int, str], prefix: str) -> list[tuple[int, Marker]]:
    decoded = decode_markers(markers, schemas).where(F.col("status") == END)
    # Not sorted by Spark: that takes two more jobs, and the markers are few.
    rows = sorted(decoded.collect(), key=lambda row: int(row["offset"]))
    return [(row["offset"], marker(row.asDict(recursive=True), prefix=prefix)) for row in rows]


def _groups(events: DataFrame, schemas: Mapping[int, str]) -> list[Row]:
    """Count the events by topic, transaction and, for snapshot events, lsn."""
    lsn = F.coalesce(F.col("lsn"), F.lit(NO_LSN))
    read = F.when(F.col("op") == "r", lsn).alias("read_lsn")
    undecodable = F.col("op").isNull().alias("undecodable")
    return (
        decode_envelope(events, schemas)
        .groupBy("topic", "txid", undecodable, read)
        .agg(
            F.count("*").alias("count"),
            F.min("offset").alias("first"),
            F.max("offset").alias("last"),
        )
        .collect()
    )


def _spans(groups: Sequence[Row]) -> dict[str, dict[int, Span]]:
    spans: dict[str, dict[int, Span]] = {}
    for row in groups:
        if row["txid"] is not None:
            span = Span(count=row["count"], first=row["first"], last=row["last"])
            spans.setdefault(row["topic"], {})[row["txid"]] = span
    return spans


def _snapshots(groups: Sequence[Row]) -> dict[str, frozenset[int]]:
    lsns: dict[str, frozenset[int]] = {}
    for row in groups:
        if row["read_lsn"] is not None:
            lsns[row["topic"]] = lsns.get(row["topic"], frozenset()) | {row["read_lsn"]}
    return lsns
