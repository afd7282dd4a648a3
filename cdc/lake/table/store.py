"""Current-state tables: create, widen, merge, overwrite; one commit each, position inside."""

import json
from collections.abc import Mapping
from typing import Final

from delta.tables import DeltaTable
from deltalake import DeltaTable as DeltaLog
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows it by

from cdc.events.schema import Column, TableSchema
from cdc.events.structure.structure import Structure, parse
from cdc.events.values.sql_text import spark_delta, spark_name, spark_string
from cdc.lake.session import activate
from cdc.lake.table.merge_plan import COPY, OFFSET, ROW_HASH, MergePlan, stored
from cdc.lake.table.positions import KEY_PROPERTY, METADATA_CONF, Position, open_table
from cdc.tables import TableId, TableMode

MODE_PROPERTY: Final = "wal2lake.mode"
STRUCTURE_PROPERTY: Final = "wal2lake.structure"
PROPERTIES: Final[dict[str, str]] = {
    # A merge marks changed rows and appends their new form; files are not rewritten.
    "delta.enableDeletionVectors": "true",
    # A column is renamed or dropped without rewriting files, and may have any name.
    "delta.columnMapping.mode": "name",
    # Readers replay at most that many small JSON files.
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
    """Create the empty table, with a position in its first commit."""
    spark.conf.set(METADATA_CONF, position.metadata())
    listed = _listed(_properties(schema, structure))
    columns = ", ".join([_definition(column) for column in schema.columns] + _own(schema.mode))
    spark.sql(f"CREATE TABLE {spark_delta(path)} ({columns}) USING delta TBLPROPERTIES ({listed})")


def replace(  # noqa: PLR0917 - those of create, and the rows
    spark: SparkSession,
    path: str,
    rows: DataFrame,
    schema: TableSchema,
    position: Position,
    structure: Structure | None = None,
) -> None:
    """Make the table of these rows in one commit, whatever is there; readers see the old or this.

    ``rows`` have the columns ``stored(schema)`` and are of this session, whose configuration says
    the position. Nothing of the old table is read but its log; where not even that can be read,
    the error is raised and nothing is changed.
    """
    spark.conf.set(METADATA_CONF, position.metadata())
    made = rows.selectExpr(*map(spark_name, stored(schema)))
    said = {"comment": _OFFSET_COMMENT}
    named = made.withColumn(OFFSET, F.col(OFFSET).alias(OFFSET, metadata=said))
    writer = named.writeTo(spark_delta(path)).using("delta")
    # A table that is there already has the features that it was made with.
    for name, value in (_properties(schema, structure) | features(schema.columns)).items():
        writer = writer.tableProperty(name, value)
    writer.createOrReplace()


def _properties(schema: TableSchema, structure: Structure | None) -> dict[str, str]:
    known = {} if structure is None else {STRUCTURE_PROPERTY: structure.to_text()}
    own = {KEY_PROPERTY: json.dumps(list(schema.key)), MODE_PROPERTY: schema.mode.value}
    return PROPERTIES | own | known


def _definition(column: Column) -> str:
    return f"{spark_name(column.name)} {column.type}"


def _own(mode: TableMode) -> list[str]:
    own = [f"{OFFSET} BIGINT COMMENT {spark_string(_OFFSET_COMMENT)}"]
    if mode is TableMode.MULTISET:
        own += ["_cdc_row_hash STRING", "_cdc_copy BIGINT"]
    return own


def read_schema(
    spark: SparkSession, path: str, table: TableId, version: int | None = None
) -> TableSchema | None:
    """The schema of the Delta table as it was created; None where there is no table."""
    opened = _opened(path, version)
    if opened is None:
        return None
    properties = opened.metadata().configuration
    fields = read(spark, path, version).schema.fields
    structure = read_structure(path, version)
    texts = {c.name for c in structure.followed if c.column.as_text} if structure else set()
    columns = tuple(
        Column(field.name, field.dataType.simpleString(), as_text=field.name in texts)
        for field in fields
        if field.name not in {OFFSET, ROW_HASH, COPY}
    )
    return TableSchema(
        table=table,
        columns=columns,
        key=tuple(json.loads(properties[KEY_PROPERTY])),
        mode=TableMode(properties[MODE_PROPERTY]),
    )


def add_columns(
    spark: SparkSession, path: str, columns: tuple[Column, ...], position: Position
) -> None:
    """Widen the table; rows already there show NULL in the new columns."""
    spark.conf.set(METADATA_CONF, position.metadata())
    if needed := features(columns):
        set_properties(spark, path, needed)
    add(spark, path, columns)


def add(spark: SparkSession, path: str, columns: tuple[Column, ...]) -> None:
    """In one commit, with the position that the session holds."""
    listed = ", ".join(_definition(column) for column in columns)
    spark.sql(f"ALTER TABLE {spark_delta(path)} ADD COLUMNS ({listed})")


def features(columns: tuple[Column, ...]) -> dict[str, str]:
    """Properties without which a table that has no such column yet can get none."""
    named = any("timestamp_ntz" in column.type for column in columns)
    return {"delta.feature.timestampNtz": "supported"} if named else {}


def set_key(spark: SparkSession, path: str, key: tuple[str, ...]) -> None:
    set_properties(spark, path, {KEY_PROPERTY: json.dumps(list(key))})


def set_properties(spark: SparkSession, path: str, properties: Mapping[str, str]) -> None:
    """In one commit, with the position that the session holds."""
    spark.sql(f"ALTER TABLE {spark_delta(path)} SET TBLPROPERTIES ({_listed(properties)})")


def set_everywhere(spark: SparkSession, path: str, values: Mapping[str, str]) -> None:
    """The same SQL values in every row; one commit."""
    DeltaTable.forPath(spark, path).update(
        set={spark_name(name): F.expr(value) for name, value in values.items()}
    )


def read(spark: SparkSession, path: str, version: int | None = None) -> DataFrame:
    """The rows of the newest version, or of the one named."""
    reader = spark.read.format("delta")
    return (reader if version is None else reader.option("versionAsOf", version)).load(path)


def read_pinned(spark: SparkSession, path: str) -> DataFrame:
    """The rows of the version that is the newest one now, whatever is appended later.

    Spark reads again what it keeps (``persist``) of a table's newest version as soon as the table
    is appended to, once more with every append; of a version it does not.
    """
    return read(spark, path, DeltaLog(path).version())


def _opened(path: str, version: int | None) -> DeltaLog | None:
    return open_table(path) if version is None else DeltaLog(path, version=version)


def read_structure(path: str, version: int | None = None) -> Structure | None:
    """The source's structure that the table follows; None where nothing is known of it."""
    opened = _opened(path, version)
    text = opened.metadata().configuration.get(STRUCTURE_PROPERTY) if opened else None
    return None if text is None else parse(text)


def rewrite(rows: DataFrame, path: str, metadata: str) -> None:
    """Replace rows and columns of the table in one commit."""
    writer = rows.write.format("delta").option("userMetadata", metadata)
    writer.option("overwriteSchema", "true").mode("overwrite").save(path)


def _listed(properties: Mapping[str, str]) -> str:
    return ", ".join(
        f"{spark_string(name)} = {spark_string(value)}" for name, value in properties.items()
    )


def merge(
    spark: SparkSession, path: str, rows: DataFrame, plan: MergePlan, position: Position
) -> None:
    """Merge one row per key; source and target are called ``source`` and ``target``."""
    spark.conf.set(METADATA_CONF, position.metadata())
    activate(spark)  # Delta reads the texts of a plan by what is active in the thread
    source = rows.withColumnsRenamed(dict(plan.arriving)).alias("source")
    merger = DeltaTable.forPath(spark, path).alias("target").merge(source, plan.condition)
    if plan.delete_when is not None:
        merger = merger.whenMatchedDelete(plan.delete_when)
    if plan.update_set is not None:
        merger = merger.whenMatchedUpdate(plan.update_when, dict(plan.update_set))
    insert_when = plan.insert_when or "true"
    merger.whenNotMatchedInsert(insert_when, dict(plan.insert_values)).execute()


def append(path: str, rows: DataFrame, position: Position) -> None:
    """Add rows: for tables without a key, and for the first rows of an empty one."""
    _write(path, rows, position, "append")


def overwrite(path: str, rows: DataFrame, position: Position) -> None:
    """Replace all rows in one commit: what follows a TRUNCATE."""
    _write(path, rows, position, "overwrite")


def _write(path: str, rows: DataFrame, position: Position, mode: str) -> None:
    writer = rows.write.format("delta").option("userMetadata", position.metadata())
    writer.mode(mode).save(path)
