"""Summarizes landings by Spark: those that are large, or not in memory after a restart."""

from collections.abc import Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows it by

from cdc.apply.changes.decode import decode_envelope, decode_markers
from cdc.apply.rounds import summary
from cdc.apply.rounds.summary import Group, Summary
from cdc.events.transactions import END, Marker, marker
from cdc.events.values.lsn import NO_LSN

_FIELDS = ("topic", "txid", "undecodable", "read_lsn", "count", "first", "last")


def summaries(
    rows: DataFrame, schemas: Mapping[int, str], *, marker_topic: str, prefix: str
) -> dict[int, Summary]:
    """Return the summaries of rows of the log, by landing, in two Spark jobs.

    Landings without events beyond tombstones are left out.
    """
    is_marker = F.col("topic") == marker_topic
    groups = _groups(rows.where(~is_marker & F.col("value").isNotNull()), schemas)
    ends = _ends(rows.where(is_marker), schemas, prefix)
    return {
        number: Summary(groups=groups.get(number, ()), ends=ends.get(number, ()))
        for number in groups.keys() | ends.keys()
    }


def snapshots(events: DataFrame, schemas: Mapping[int, str]) -> dict[str, frozenset[int]]:
    """Return the lsns of the snapshots among events of the log, by topic, in one Spark job."""
    groups = _groups(events.where(F.col("value").isNotNull()), schemas)
    return summary.snapshots(group for found in groups.values() for group in found)


def _ends(
    markers: DataFrame, schemas: Mapping[int, str], prefix: str
) -> dict[int, list[tuple[int, Marker]]]:
    decoded = decode_markers(markers, schemas, "landing").where(F.col("status") == END)
    # Not sorted by Spark: that takes two more jobs, and the markers are few.
    rows = sorted(decoded.collect(), key=lambda row: int(row["offset"]))
    ends: dict[int, list[tuple[int, Marker]]] = {}
    for row in rows:
        end = row["offset"], marker(row.asDict(recursive=True), prefix=prefix)
        ends.setdefault(row["landing"], []).append(end)
    return ends


def _groups(events: DataFrame, schemas: Mapping[int, str]) -> dict[int, Sequence[Group]]:
    """Count the events by landing, topic, transaction and, for snapshot events, lsn."""
    lsn = F.coalesce(F.col("lsn"), F.lit(NO_LSN))
    read = F.when(F.col("op") == "r", lsn).alias("read_lsn")
    undecodable = F.col("op").isNull().alias("undecodable")
    rows = (
        decode_envelope(events, schemas, "landing")
        .groupBy("landing", "topic", "txid", undecodable, read)
        .agg(
            F.count("*").alias("count"),
            F.min("offset").alias("first"),
            F.max("offset").alias("last"),
        )
        .collect()
    )
    groups: dict[int, list[Group]] = {}
    for row in rows:
        groups.setdefault(row["landing"], []).append(Group(*(row[name] for name in _FIELDS)))
    return dict(groups)
