"""Creates, widens, merges and overwrites current-state tables, in one commit with the position."""

import json
from collections.abc import Mapping, Sequence
from typing import Final

from delta.tables import DeltaTable
from deltalake import DeltaTable as DeltaLog
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows it by
from pyspark.sql.types import StructType

from cdc.events.schema import Column, TableSchema
from cdc.events.structure.structure import Structure, parse
from cdc.events.values.sql_text import spark_delta, spark_name, spark_string
from cdc.lake.files.delta import delta_table
from cdc.lake.session import activate
from cdc.lake.table.merge_plan import COPY, OFFSET, ROW_HASH, MergePlan, stored_columns
from cdc.lake.table.positions import KEY_PROPERTY, METADATA_CONF, Position, open_table
from cdc.tables import TableId, TableMode

MODE_PROPERTY: Final = "wal2lake.mode"
STRUCTURE_PROPERTY: Final = "wal2lake.structure"
PROPERTIES: Final[dict[str, str]] = {
    # A merge marks changed rows as deleted and appends the new ones; no file is rewritten.
    "delta.enableDeletionVectors": "true",
    # A column can be renamed or dropped without rewriting files, and may have any name.
    "delta.columnMapping.mode": "name",
    # Readers replay at most this many small JSON files.
    "delta.checkpointInterval": "20",
}

_OFFSET_COMMENT: Final = "offset of the change event that wrote the row"


def create(
    spark: SparkSession,
    path: str,
    schema: TableSchema,
    position: Position,
    structure: Structure | None = None,
) -> None:
    """Create the empty table at ``path``, with a position in its first commit.

    ``structure`` is the source's structure that the table follows, if it is known.
    """
    spark.conf.set(METADATA_CONF, position.metadata())
    listed = _listed(properties(schema, structure))
    columns = definition(schema)
    spark.sql(f"CREATE TABLE {spark_delta(path)} ({columns}) USING delta TBLPROPERTIES ({listed})")


def replace(  # noqa: PLR0917 - the parameters of create, and the rows
    spark: SparkSession,
    path: str,
    rows: DataFrame,
    schema: TableSchema,
    position: Position,
    structure: Structure | None = None,
) -> None:
    """Create or replace the table with these rows in one commit.

    Readers see either the old table or the new one. ``rows`` have the columns ``stored(schema)``
    and belong to this session, whose configuration carries the position. Only the log of the old
    table is read; if that fails, the error is raised and nothing is changed.
    """
    spark.conf.set(METADATA_CONF, position.metadata())
    selected = rows.selectExpr(*map(spark_name, stored_columns(schema)))
    comment = {"comment": _OFFSET_COMMENT}
    commented = selected.withColumn(OFFSET, F.col(OFFSET).alias(OFFSET, metadata=comment))
    writer = commented.writeTo(spark_delta(path)).using("delta")
    # An existing table has only the features that it was created with.
    allowed = {f"delta.feature.{name}": "supported" for name in features(schema.columns)}
    for name, value in (properties(schema, structure) | allowed).items():
        writer = writer.tableProperty(name, value)
    writer.createOrReplace()


def definition(schema: TableSchema) -> str:
    """Return the columns of a table as ``CREATE TABLE`` lists them."""
    return ", ".join([listed(column) for column in schema.columns] + _own(schema.mode))


def properties(schema: TableSchema, structure: Structure | None) -> dict[str, str]:
    """Return the properties of a table; ``structure`` is the source's that it follows."""
    followed = {} if structure is None else {STRUCTURE_PROPERTY: structure.to_text()}
    own = {KEY_PROPERTY: json.dumps(list(schema.key)), MODE_PROPERTY: schema.mode.value}
    return PROPERTIES | own | followed


def listed(column: Column) -> str:
    """Return a column as ``CREATE TABLE`` lists it."""
    return f"{spark_name(column.name)} {column.type}"


def _own(mode: TableMode) -> list[str]:
    own = [f"{OFFSET} BIGINT COMMENT {spark_string(_OFFSET_COMMENT)}"]
    if mode is TableMode.MULTISET:
        own += ["_cdc_row_hash STRING", "_cdc_copy BIGINT"]
    return own


def read_schema(path: str, table: TableId, version: int | None = None) -> TableSchema | None:
    """Return the schema of the Delta table, of its newest version or of ``version``.

    None if there is no table. Spark is not asked: that costs a job for each table.
    """
    opened = _opened(path, version)
    return None if opened is None else _schema(opened, table)


def read_content(path: str, table: TableId) -> tuple[TableSchema | None, Structure | None]:
    """Return what ``read_schema`` and ``read_structure`` do, and open the log once for both."""
    opened = open_table(path)
    return (None, None) if opened is None else (_schema(opened, table), _structure(opened))


def _schema(opened: DeltaLog, table: TableId) -> TableSchema:
    recorded = opened.metadata().configuration
    fields = StructType.fromJson(json.loads(opened.schema().to_json())).fields
    structure = _structure(opened)
    texts = {c.name for c in structure.followed if c.column.as_text} if structure else set()
    columns = tuple(
        Column(field.name, field.dataType.simpleString(), as_text=field.name in texts)
        for field in fields
        if field.name not in {OFFSET, ROW_HASH, COPY}
    )
    return TableSchema(
        table=table,
        columns=columns,
        key=tuple(json.loads(recorded[KEY_PROPERTY])),
        mode=TableMode(recorded[MODE_PROPERTY]),
    )


def features(columns: Sequence[Column]) -> list[str]:
    """Return what a table has to allow before its first column of such a type is added."""
    return ["timestampNtz"] if any("timestamp_ntz" in column.type for column in columns) else []


def clone(spark: SparkSession, path: str, to: str, version: int) -> None:
    """Make a table at ``to`` of one version of the table at ``path``, with the same data files."""
    of_version = f"{spark_delta(path)} VERSION AS OF {version:d}"
    spark.sql(f"CREATE TABLE {spark_delta(to)} SHALLOW CLONE {of_version}")


def set_properties(spark: SparkSession, path: str, properties: Mapping[str, str]) -> None:
    """Set table properties in one commit, with the position that is set in the session."""
    spark.sql(f"ALTER TABLE {spark_delta(path)} SET TBLPROPERTIES ({_listed(properties)})")


def set_everywhere(spark: SparkSession, path: str, values: Mapping[str, str]) -> None:
    """Set columns to the same SQL values in every row, in one commit."""
    DeltaTable.forPath(spark, path).update(
        set={spark_name(name): F.expr(value) for name, value in values.items()}
    )


def read(spark: SparkSession, path: str, version: int | None = None) -> DataFrame:
    """Return the rows of the newest version, or of ``version``."""
    reader = spark.read.format("delta")
    return (reader if version is None else reader.option("versionAsOf", version)).load(path)


def read_pinned(spark: SparkSession, path: str) -> DataFrame:
    """Return the rows of the version that is the newest now, whatever is appended later.

    Spark recomputes what is persisted of a table's newest version after every append to the table.
    It does not recompute what is persisted of a fixed version.
    """
    return read(spark, path, delta_table(path).version())


def _opened(path: str, version: int | None) -> DeltaLog | None:
    return open_table(path) if version is None else delta_table(path, version)


def read_structure(path: str, version: int | None = None) -> Structure | None:
    """Return the source's structure that the table follows; None if it is not recorded."""
    opened = _opened(path, version)
    return None if opened is None else _structure(opened)


def _structure(opened: DeltaLog) -> Structure | None:
    text = opened.metadata().configuration.get(STRUCTURE_PROPERTY)
    return None if text is None else parse(text)


def rewrite(rows: DataFrame, path: str, metadata: str) -> None:
    """Replace all rows and columns of the table in one commit."""
    writer = rows.write.format("delta").option("userMetadata", metadata)
    writer.option("overwriteSchema", "true").mode("overwrite").save(path)


def _listed(properties: Mapping[str, str]) -> str:
    return ", ".join(
        f"{spark_string(name)} = {spark_string(value)}" for name, value in properties.items()
    )


def merge(
    spark: SparkSession, path: str, rows: DataFrame, plan: MergePlan, position: Position
) -> None:
    """Merge rows into the table by a plan, in one commit; ``rows`` have one row per key."""
    spark.conf.set(METADATA_CONF, position.metadata())
    activate(spark)  # Delta parses a plan's SQL with the settings of the thread's active session
    source = rows.withColumnsRenamed(dict(plan.arriving)).alias("source")
    merger = DeltaTable.forPath(spark, path).alias("target").merge(source, plan.condition)
    if plan.delete_when is not None:
        merger = merger.whenMatchedDelete(plan.delete_when)
    if plan.update_set is not None:
        merger = merger.whenMatchedUpdate(plan.update_when, dict(plan.update_set))
    insert_when = plan.insert_when or "true"
    merger.whenNotMatchedInsert(insert_when, dict(plan.insert_values)).execute()


def append(path: str, rows: DataFrame, position: Position) -> None:
    """Append rows in one commit: for tables of inserts only, or the first rows of any table."""
    _write(path, rows, position, "append")


def overwrite(path: str, rows: DataFrame, position: Position) -> None:
    """Replace all rows in one commit: used after a TRUNCATE."""
    _write(path, rows, position, "overwrite")


def _write(path: str, rows: DataFrame, position: Position, mode: str) -> None:
    writer = rows.write.format("delta").option("userMetadata", position.metadata())
    writer.mode(mode).save(path)
