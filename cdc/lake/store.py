"""Current-state tables: create, widen, merge, overwrite; one commit each, position inside."""

import json
from collections.abc import Mapping
from typing import Final

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everyone knows it by

from cdc.apply.merge_plan import COPY, OFFSET, ROW_HASH, MergePlan, quoted
from cdc.events.schema import Column, TableSchema
from cdc.events.structure import Structure, parse
from cdc.lake.progress import METADATA_CONF, Position, open_table
from cdc.tables import TableId, TableMode

KEY_PROPERTY: Final = "wal2lake.key"
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


def at(path: str) -> str:
    """The table at the path, as SQL names it."""
    escaped = path.replace("`", "``")
    return f"delta.`{escaped}`"


def create(
    spark: SparkSession,
    path: str,
    schema: TableSchema,
    position: Position,
    structure: Structure | None = None,
) -> None:
    """Create the empty table, with a position in its first commit."""
    spark.conf.set(METADATA_CONF, position.metadata())
    properties = PROPERTIES | {
        KEY_PROPERTY: json.dumps(list(schema.key)),
        MODE_PROPERTY: schema.mode.value,
    }
    if structure is not None:
        properties[STRUCTURE_PROPERTY] = structure.to_text()
    listed = _listed(properties)
    columns = ", ".join([_definition(column) for column in schema.columns] + _own(schema.mode))
    spark.sql(f"CREATE TABLE {at(path)} ({columns}) USING delta TBLPROPERTIES ({listed})")


def _definition(column: Column) -> str:
    return f"{quoted(column.name)} {column.type}"


def _own(mode: TableMode) -> list[str]:
    own = ["_cdc_offset BIGINT COMMENT 'offset of the change event that wrote the row'"]
    if mode is TableMode.MULTISET:
        own += ["_cdc_row_hash STRING", "_cdc_copy BIGINT"]
    return own


def read_schema(spark: SparkSession, path: str, table: TableId) -> TableSchema | None:
    """The schema of the Delta table as it was created; None where there is no table."""
    opened = open_table(path)
    if opened is None:
        return None
    properties = opened.metadata().configuration
    fields = spark.read.format("delta").load(path).schema.fields
    structure = read_structure(path)
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
    spark.sql(f"ALTER TABLE {at(path)} ADD COLUMNS ({listed})")


def features(columns: tuple[Column, ...]) -> dict[str, str]:
    """Properties without which a table that has no such column yet can get none."""
    named = any("timestamp_ntz" in column.type for column in columns)
    return {"delta.feature.timestampNtz": "supported"} if named else {}


def set_key(spark: SparkSession, path: str, key: tuple[str, ...]) -> None:
    set_properties(spark, path, {KEY_PROPERTY: json.dumps(list(key))})


def set_properties(spark: SparkSession, path: str, properties: Mapping[str, str]) -> None:
    """In one commit, with the position that the session holds."""
    spark.sql(f"ALTER TABLE {at(path)} SET TBLPROPERTIES ({_listed(properties)})")


def set_everywhere(spark: SparkSession, path: str, values: Mapping[str, str]) -> None:
    """The same SQL values in every row; one commit."""
    DeltaTable.forPath(spark, path).update(
        set={quoted(name): F.expr(value) for name, value in values.items()}
    )


def read_structure(path: str) -> Structure | None:
    """The source's structure that the table follows; None where nothing is known of it."""
    opened = open_table(path)
    text = opened.metadata().configuration.get(STRUCTURE_PROPERTY) if opened else None
    return None if text is None else parse(text)


def rewrite(rows: DataFrame, path: str, metadata: str) -> None:
    """Replace rows and columns of the table in one commit."""
    writer = rows.write.format("delta").option("userMetadata", metadata)
    writer.option("overwriteSchema", "true").mode("overwrite").save(path)


def _listed(properties: Mapping[str, str]) -> str:
    return ", ".join(f"'{name}' = '{_literal(value)}'" for name, value in properties.items())


def merge(
    spark: SparkSession, path: str, rows: DataFrame, plan: MergePlan, position: Position
) -> None:
    """Merge one row per key; source and target are called ``source`` and ``target``."""
    spark.conf.set(METADATA_CONF, position.metadata())
    merger = (
        DeltaTable.forPath(spark, path).alias("target").merge(rows.alias("source"), plan.condition)
    )
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


def _literal(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")
