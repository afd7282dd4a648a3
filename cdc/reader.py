"""For programs that read the lake: tables as they all were at one published cut.

    import cdc

    cdc.read("shop.orders", lake="/data/lake").read_all()                    # Arrow, by delta-rs
    cdc.read("shop.orders", lake="/data/lake", spark=spark)                  # a Spark DataFrame

    cut = cdc.cut("2026-01-31T12:00:00Z", lake="/data/lake")                 # one moment for many
    orders = cdc.read("shop.orders", at=cut, lake="/data/lake", spark=spark)
    prices = cdc.read("shop.prices", at=cut, lake="/data/lake", spark=spark)

    cdc.views(spark, at=cut, lake="/data/lake")
    spark.sql("SELECT count(*) FROM shop.orders JOIN shop.prices USING (id)")

``at`` is a cut of ``cut``, its number, an LSN (``0/16B3748``), a time with its zone or ``latest``
(cdc/client/read/at.py). ``lake`` is the path of the lake; without it that of the configuration file
is read. A table that is not the source's at the cut (stopped, degraded, being read) is refused,
unless ``flagged`` says that it is wanted as it is.

In a Spark session that is given, Delta's limit to the age of versions is turned off: it refuses a
table that rested for a week at a cut of a minute ago (cdc/lake/upkeep/transaction_log.py). A
session that uses a view that another one made has to set it too.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, overload

import pyarrow as pa
from deltalake import QueryBuilder

from cdc.client.read.published import cut_at, is_flagged, open_version, warning
from cdc.config import DEFAULT_FILE, load
from cdc.errors import CdcError, ErrorKind
from cdc.events.names import case_twins
from cdc.events.values.sql_text import spark_delta, spark_name
from cdc.lake.layout import ledger_under, table_under
from cdc.lake.records.ledger import Ledger, LedgerRow
from cdc.lake.upkeep.transaction_log import AGE_LIMIT
from cdc.tables import TableId

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

At = LedgerRow | str | int | datetime | None


def cut(
    at: At = None, *, lake: str | Path | None = None, config: str | Path = DEFAULT_FILE
) -> LedgerRow:
    """The published cut that ``at`` means; the newest by default.

    Raises CONFIG for one that is not there, and where nothing is published yet.
    """
    if isinstance(at, LedgerRow):
        return at
    root = _root(lake, config)
    row = cut_at(Ledger(ledger_under(root)), at)
    if row is None:
        raise CdcError(
            ErrorKind.CONFIG,
            f"nothing is published yet in the lake {root}",
            remedy="correct the path, or wait for the first cut: wal2lake sync",
        )
    return row


@overload
def read(
    table: str,
    *,
    at: At = None,
    lake: str | Path | None = None,
    config: str | Path = DEFAULT_FILE,
    spark: None = None,
    flagged: bool = False,
) -> pa.RecordBatchReader: ...


@overload
def read(
    table: str,
    *,
    at: At = None,
    lake: str | Path | None = None,
    config: str | Path = DEFAULT_FILE,
    spark: "SparkSession",
    flagged: bool = False,
) -> "DataFrame": ...


def read(
    table: str,
    *,
    at: At = None,
    lake: str | Path | None = None,
    config: str | Path = DEFAULT_FILE,
    spark: "SparkSession | None" = None,
    flagged: bool = False,
) -> "pa.RecordBatchReader | DataFrame":
    """The rows of one table (``schema.table``) at a cut, with columns of ours (``_cdc_*``).

    Raises CONFIG for a table that the cut does not have and for a version that vacuum has taken,
    TABLE_STOPPED for one that is flagged there.
    """
    root = _root(lake, config)
    row = cut(at, lake=root)
    entry = row.entry(table)
    if entry is None or entry.version < 0:
        raise CdcError(
            ErrorKind.CONFIG,
            f"cut {row.cut} has no table {table}",
            remedy=f"it has {', '.join(e.table for e in row.tables if e.version >= 0) or 'none'}",
        )
    if is_flagged(entry) and not flagged:
        raise CdcError(
            ErrorKind.TABLE_STOPPED,
            warning(entry, row.cut),
            remedy="read it as it is with flagged=True; or choose a cut at which it is streaming",
        )
    path = table_under(root, TableId.parse(table))
    opened = open_version(path, entry.version)  # its clear error, for Spark too
    if spark is not None:
        spark.conf.set(AGE_LIMIT, "false")
        return spark.read.format("delta").option("versionAsOf", entry.version).load(path)
    found = QueryBuilder().register("t", opened).execute("SELECT * FROM t")
    return pa.RecordBatchReader.from_stream(found)


def views(
    spark: "SparkSession",
    *,
    at: At = None,
    lake: str | Path | None = None,
    config: str | Path = DEFAULT_FILE,
    flagged: bool = False,
    names: Mapping[str, str] | None = None,
) -> LedgerRow:
    """Make a view ``schema.table`` of every table, all at one cut; returns the cut.

    Views of before are replaced, so that the next call moves them to another cut. Flagged tables
    get none unless they are allowed, and one of before is dropped. ``names`` gives a table's view
    another name (``schema.view``), or none at all (an empty one); it has to where Spark's catalogue
    takes the table's own name for no valid one, or for that of another. Raises CONFIG, before any
    view is made, where it does not, and for a lake whose path Spark's SQL would not take as it is.
    """
    root = _root(lake, config)
    row = cut(at, lake=root)
    if "${" in root:
        raise CdcError(
            ErrorKind.CONFIG,
            f"Spark's SQL would read another path than {root}",
            detail="it puts values in the place of ${..}, and a view is SQL",
            remedy="read the tables with cdc.read, or give the lake another path",
        )
    named = [(entry, _view(entry.table, names or {})) for entry in row.tables]
    _refuse_twins(view for _, view in named if view is not None)
    spark.conf.set(AGE_LIMIT, "false")
    for entry, view in named:
        if view is None:
            continue
        schema, name = spark_name(view.schema), spark_name(view.name)
        spark.sql(f"CREATE DATABASE IF NOT EXISTS {schema}")
        if entry.version < 0 or (is_flagged(entry) and not flagged):
            spark.sql(f"DROP VIEW IF EXISTS {schema}.{name}")
            continue
        path = table_under(root, TableId.parse(entry.table))
        open_version(path, entry.version)
        rows = f"SELECT * FROM {spark_delta(path)} VERSION AS OF {entry.version}"  # noqa: S608
        spark.sql(f"CREATE OR REPLACE VIEW {schema}.{name} AS {rows}")
    return row


def _refuse_twins(views: Iterable[TableId]) -> None:
    for one, other in case_twins(list(views)):
        raise CdcError(
            ErrorKind.CONFIG,
            f"views {one} and {other} have one name in Spark's catalogue, which ignores case",
            remedy=f"give one another: names={{{str(other)!r}: 'schema.view'}}, or '' for none",
        )


def _view(table: str, names: Mapping[str, str]) -> TableId | None:
    name = names.get(table, table)
    if not name:
        return None
    if re.fullmatch(r"[A-Za-z0-9_]+\.[A-Za-z0-9_]+", name) is None:
        raise CdcError(
            ErrorKind.CONFIG,
            f"Spark's catalogue has no views of the name {name}",
            detail="letters, digits and _ are what a schema and a view may be called by",
            remedy=f"give it another: names={{{table!r}: 'schema.view'}}, or '' for none",
        )
    return TableId.parse(name)


def _root(lake: str | Path | None, config: str | Path) -> str:
    return load(Path(config)).lake.path if lake is None else str(lake).rstrip("/")
