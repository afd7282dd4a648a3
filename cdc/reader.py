"""Read tables of the lake in a program, all as they were at one published cut.

    import cdc

    cdc.read("shop.orders", lake="/data/lake").read_all()                    # Arrow, by delta-rs
    cdc.read("shop.orders", lake="/data/lake", spark=spark)                  # a Spark DataFrame

    cut = cdc.cut("2026-01-31T12:00:00Z", lake="/data/lake")                 # one moment for many
    orders = cdc.read("shop.orders", at=cut, lake="/data/lake", spark=spark)
    prices = cdc.read("shop.prices", at=cut, lake="/data/lake", spark=spark)

    cdc.changes("marts.revenue", since=cut, lake="/data/lake")               # rows gone and new

    cdc.views(spark, at=cut, lake="/data/lake")
    spark.sql("SELECT count(*) FROM shop.orders JOIN shop.prices USING (id)")

``at`` is a result of ``cut``, a cut's number, an LSN (``0/16B3748``), a time with its zone or
``latest`` (cdc/client/read/at.py). ``lake`` is the path of the lake, by default that in the
configuration file. A table that is flagged at the cut (stopped, degraded, being read) is refused
unless ``flagged`` is true.

In a Spark session that you pass, Delta's limit on the age of versions is switched off: it would
refuse a table that has not changed for a week, even at a cut that is a minute old
(cdc/lake/upkeep/transaction_log.py). A session that uses views of another session must set it too.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, overload

import pyarrow as pa
from deltalake import QueryBuilder

from cdc.client.read.changes import changes_between
from cdc.client.read.published import cut_at, is_flagged, warning
from cdc.config import DEFAULT_FILE, load
from cdc.errors import CdcError, ErrorKind
from cdc.events.names import case_twins
from cdc.events.values.sql_text import spark_delta, spark_name
from cdc.lake.layout import ledger_under, table_under
from cdc.lake.records.ledger import Ledger, LedgerRow
from cdc.lake.table.open_version import open_version
from cdc.lake.upkeep.transaction_log import AGE_LIMIT
from cdc.tables import TableId

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

At = LedgerRow | str | int | datetime | None


def cut(
    at: At = None, *, lake: str | Path | None = None, config: str | Path = DEFAULT_FILE
) -> LedgerRow:
    """Return the published cut that ``at`` names, by default the newest.

    Raises CONFIG if there is no such cut, or if nothing is published yet.
    """
    if isinstance(at, LedgerRow):
        return at
    root = _root(lake, config)
    row = cut_at(Ledger(ledger_under(root)), at)
    if row is None:
        raise CdcError(
            ErrorKind.CONFIG,
            f"nothing is published yet in the lake {root}",
            remedy="correct the path, or run wal2lake sync to wait for the first cut",
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
    """Return the rows of one table (``schema.table``) at a cut, including ``_cdc_*`` columns.

    Raises CONFIG if the cut does not have the table or vacuum has deleted the version, and
    TABLE_STOPPED if the table is flagged at the cut and ``flagged`` is false.
    """
    root = _root(lake, config)
    row = cut(at, lake=root)
    entry = row.readable(table)
    if entry is None or entry.version < 0:
        raise CdcError(
            ErrorKind.CONFIG,
            f"cut {row.cut} has no table {table}",
            remedy="choose one that it has: "
            f"{', '.join(e.table for e in row.entries if e.version >= 0) or 'none yet'}",
        )
    if is_flagged(entry) and not flagged:
        raise CdcError(
            ErrorKind.TABLE_STOPPED,
            warning(entry, row.cut),
            remedy="pass flagged=True to read it as it is, or choose a cut at which it streams",
        )
    path = table_under(root, TableId.parse(table))
    # For Spark too, because its error is clear.
    opened = open_version(path, entry.version, entry.delta_id)
    if spark is not None:
        spark.conf.set(AGE_LIMIT, "false")
        return spark.read.format("delta").option("versionAsOf", entry.version).load(path)
    rows = QueryBuilder().register("t", opened).execute("SELECT * FROM t")
    return pa.RecordBatchReader.from_stream(rows)


def changes(
    table: str,
    *,
    since: At,
    at: At = None,
    lake: str | Path | None = None,
    config: str | Path = DEFAULT_FILE,
) -> pa.Table:
    """Return what has changed in one table, captured or derived, from one cut to another.

    Its rows are those that only one of the two has: in the column ``_cdc_change``, those of
    ``since`` are ``removed`` and the others ``added``. An update is one of each. Raises CONFIG if a
    cut does not have the table, or old files are gone, and TABLE_STOPPED if it is flagged at one.
    """
    root = _root(lake, config)
    path = table_under(root, TableId.parse(table))
    return changes_between(table, cut(since, lake=root), cut(at, lake=root), path)


def views(
    spark: "SparkSession",
    *,
    at: At = None,
    lake: str | Path | None = None,
    config: str | Path = DEFAULT_FILE,
    flagged: bool = False,
    names: Mapping[str, str] | None = None,
) -> LedgerRow:
    """Create a view ``schema.table`` of every table, all at one cut, and return the cut.

    Existing views are replaced, so that the next call moves them to another cut. A flagged table
    has no view unless ``flagged`` is true; an existing one is dropped. ``names`` gives a table's
    view another name (``schema.view``), or no view if the name is empty. It must do so if Spark's
    catalogue does not accept the table's own name, or confuses it with another. Raises CONFIG,
    before any view is created, for such a name and for a lake's path that Spark SQL would change.
    """
    root = _root(lake, config)
    row = cut(at, lake=root)
    if "${" in root:
        raise CdcError(
            ErrorKind.CONFIG,
            f"Spark SQL would read another path than {root}",
            detail="it substitutes ${..} in views",
            remedy="read the tables with cdc.read, or move the lake to another path",
        )
    entry_views = [(entry, _view(entry.table, names or {})) for entry in row.entries]
    _refuse_twins(view for _, view in entry_views if view is not None)
    spark.conf.set(AGE_LIMIT, "false")
    for entry, view in entry_views:
        if view is None:
            continue
        schema, name = spark_name(view.schema), spark_name(view.name)
        spark.sql(f"CREATE DATABASE IF NOT EXISTS {schema}")
        if entry.version < 0 or (is_flagged(entry) and not flagged):
            spark.sql(f"DROP VIEW IF EXISTS {schema}.{name}")
            continue
        path = table_under(root, TableId.parse(entry.table))
        open_version(path, entry.version, entry.delta_id)
        rows = f"SELECT * FROM {spark_delta(path)} VERSION AS OF {entry.version}"  # noqa: S608
        spark.sql(f"CREATE OR REPLACE VIEW {schema}.{name} AS {rows}")
    return row


def _refuse_twins(views: Iterable[TableId]) -> None:
    for first, second in case_twins(list(views)):
        raise CdcError(
            ErrorKind.CONFIG,
            f"views {first} and {second} have one name in Spark's catalogue, which ignores case",
            remedy=f"rename one: names={{{str(second)!r}: 'schema.view'}}, or '' for no view",
        )


def _view(table: str, names: Mapping[str, str]) -> TableId | None:
    name = names.get(table, table)
    if not name:
        return None
    if re.fullmatch(r"[A-Za-z0-9_]+\.[A-Za-z0-9_]+", name) is None:
        raise CdcError(
            ErrorKind.CONFIG,
            f"Spark's catalogue cannot have a view named {name}",
            detail="names of schemas and views have only letters, digits and _",
            remedy=f"rename it: names={{{table!r}: 'schema.view'}}, or '' for no view",
        )
    return TableId.parse(name)


def _root(lake: str | Path | None, config: str | Path) -> str:
    return load(Path(config)).lake.path if lake is None else str(lake).rstrip("/")
