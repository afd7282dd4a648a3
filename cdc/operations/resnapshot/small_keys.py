"""Chooses the rows of some keys, in the source and among the rows of the lake."""

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
from psycopg import sql

from cdc.apply.local.change import Key
from cdc.apply.local.identity import key_of
from cdc.events.schema import TableSchema
from cdc.lake.table.plain_values import plain_values
from cdc.operations.resnapshot.arrow_values import arrow_rows
from cdc.operations.resnapshot.refused_row import parted
from cdc.operations.resnapshot.target import Target
from cdc.source.rows.by_key import is_of_keys, key_columns
from cdc.source.server.connection import Connection

Texts = Sequence[Sequence[str]]
"""Keys as the texts of their columns, in the order of the key and in Postgres's form."""


def wanted_rows(connection: Connection, schema: TableSchema, keys: Texts) -> sql.Composed:
    """Return the condition for the source's rows of these keys; raises like ``key_columns``."""
    columns = key_columns(connection, schema.table, schema.key)
    return is_of_keys(schema.table, columns, keys)


def held_keys(target: Target, keys: Texts) -> frozenset[Key]:
    """Return the keys as the lake has them, without those that it cannot hold."""
    by_name = {one.name: one for one in target.structure.followed}
    of_key = [by_name[name] for name in target.schema.key]
    texts = [pa.array(column, pa.string()) for column in zip(*keys, strict=True)]
    made = arrow_rows(
        pa.table(texts, names=list(target.schema.key)),
        [one.column for one in of_key],
        [one.pg for one in of_key],
    )
    rows, _ = parted(made, target.schema.key)
    values = zip(*(plain_values(column) for column in rows.columns), strict=True)
    columns = tuple(one.column for one in of_key)
    found = map(key_of(replace(target.schema, columns=columns)), values)
    return frozenset(key for key in found if key is not None)
