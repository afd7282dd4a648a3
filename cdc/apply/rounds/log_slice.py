"""One slice of the log: the rows a round looks at and the transactions in them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows it by

from cdc.apply.changes.decode import decode_envelope, decode_markers
from cdc.apply.rounds.cut import Span
from cdc.events.transactions import END, Marker, marker
from cdc.events.values.lsn import NO_LSN
from cdc.lake.table.store import read_pinned
from cdc.land.landing import Landing, last_offsets


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """Events after the last cut, as far as the round takes them."""

    rows: DataFrame  # columns of the log
    ends: Sequence[Marker]  # END markers, in order
    end_offsets: Mapping[int, int]  # offset of the END marker, by its lsn
    spans: Mapping[str, Mapping[int, Span]]  # by topic and transaction
    last: Mapping[str, int]  # offset of the last event, by topic
    undecodable: frozenset[str]  # topics with an event whose transaction cannot be told
    snapshots: Mapping[str, frozenset[int]]  # by topic: lsn (or NO_LSN) of reads of a snapshot


def read(
    spark: SparkSession, path: str, landings: Sequence[Landing], after: Mapping[str, int]
) -> DataFrame:
    """Rows of these landings beyond the offsets; files of other landings are skipped."""
    numbers = [landing.number for landing in landings]
    wanted = [
        (F.col("topic") == topic) & (F.col("offset") > after.get(topic, -1))
        for topic in last_offsets(landings)
    ]
    rows = read_pinned(spark, path)
    return rows.where(F.col("landing").between(numbers[0], numbers[-1]) & _any(wanted))


def look(
    rows: DataFrame,
    schemas: Mapping[int, str],
    *,
    last: Mapping[str, int],
    marker_topic: str,
    prefix: str,
) -> Slice:
    """Find the transactions in the rows; two Spark jobs.

    ``last`` must name every topic whose events are awaited, also those of which nothing landed.
    """
    is_marker = F.col("topic") == marker_topic
    places = _places(rows.where(~is_marker & F.col("value").isNotNull()), schemas)
    ends = _ends(rows.where(is_marker), schemas, prefix)
    return Slice(
        rows=rows,
        ends=[end for _, end in ends],
        end_offsets={end.lsn: offset for offset, end in ends},
        spans=_spans(places),
        last=last,
        undecodable=frozenset(row["topic"] for row in places if row["undecodable"]),
        snapshots=_snapshots(places),
    )


def snapshots(events: DataFrame, schemas: Mapping[int, str]) -> dict[str, frozenset[int]]:
    """The snapshots that the reads among rows of the log are of, by topic; one Spark job."""
    return _snapshots(_places(events.where(F.col("value").isNotNull()), schemas))


def _any(conditions: Iterable[Column]) -> Column:
    return reduce(or_, conditions, F.lit(False))  # noqa: FBT003 - a literal column


def _ends(markers: DataFrame, schemas: Mapping[int, str], prefix: str) -> list[tuple[int, Marker]]:
    decoded = decode_markers(markers, schemas).where(F.col("status") == END)
    # Sorted here: a sort in Spark takes two more jobs, and the markers are few.
    rows = sorted(decoded.collect(), key=lambda row: int(row["offset"]))
    return [(row["offset"], marker(row.asDict(recursive=True), prefix=prefix)) for row in rows]


def _places(events: DataFrame, schemas: Mapping[int, str]) -> list[Row]:
    """Events counted by topic, transaction and (of a snapshot's reads) lsn."""
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


def _spans(places: Sequence[Row]) -> dict[str, dict[int, Span]]:
    found: dict[str, dict[int, Span]] = {}
    for row in places:
        if row["txid"] is not None:
            span = Span(count=row["count"], first=row["first"], last=row["last"])
            found.setdefault(row["topic"], {})[row["txid"]] = span
    return found


def _snapshots(places: Sequence[Row]) -> dict[str, frozenset[int]]:
    found: dict[str, frozenset[int]] = {}
    for row in places:
        if row["read_lsn"] is not None:
            found[row["topic"]] = found.get(row["topic"], frozenset()) | {row["read_lsn"]}
    return found
