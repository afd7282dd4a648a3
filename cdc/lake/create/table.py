"""Creates a table of the lake without Spark where that is possible."""

import json
from typing import Any

from pyspark.sql.types import StructType

from cdc.events.schema import TableSchema
from cdc.events.structure.structure import Structure
from cdc.lake.commit.protocol import TakeMergeError
from cdc.lake.create.first_entry import create_table
from cdc.lake.own_session import AnySession, OwnSession
from cdc.lake.table import store
from cdc.lake.table.positions import Position


def described(columns: str) -> list[dict[str, Any]]:
    """Return columns, given as SQL lists them, as Delta describes them in a schema."""
    fields: list[dict[str, Any]] = json.loads(StructType.fromDDL(columns).json())["fields"]
    return fields


def create(
    session: AnySession,
    path: str,
    schema: TableSchema,
    position: Position,
    structure: Structure | None = None,
) -> None:
    """Create the empty table like ``store.create``; Spark's parser is asked, no job is run.

    ``session`` is asked for only if the table cannot be created without Spark.
    """
    fields = described(store.definition(schema))
    try:
        create_table(path, fields, store.properties(schema, structure), position.metadata())
    except TakeMergeError:
        store.create(OwnSession.of(session).get(), path, schema, position, structure)
