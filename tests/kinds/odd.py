"""Tables and columns with odd names, which the lake must keep unchanged."""

from psycopg import sql

from tests.kinds.columns import SCHEMA
from tests.kinds.pipeline import Pipeline, Row
from tests.spark.lake.test_names import INSIDE, compatible
from tests.unit.events.test_names import KEPT

TABLES = ("9lives", "0", "-", "_x", "T1", "t1", "Value", "Envelope", "null", "a-b_c", "a_b-c")
TWIN = SCHEMA.upper()
"""A schema that no pattern names; its tables' names differ from ours only in case."""
WIDE = "odd-columns"
COLUMNS = tuple(compatible([*KEPT, *INSIDE]))


def create(pipeline: Pipeline) -> None:
    """Create the tables with their first rows."""
    with pipeline.connect() as connection:
        for schema, tables in ((SCHEMA, TABLES), (TWIN, ("T1", "9LIVES"))):
            connection.execute(
                sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(schema))
            )
            for table in tables:
                connection.execute(
                    sql.SQL("CREATE TABLE {} (id int PRIMARY KEY, n int, filepath text)").format(
                        sql.Identifier(schema, table)
                    )
                )
        listed = sql.SQL(", ").join(sql.SQL("{} text").format(sql.Identifier(n)) for n in COLUMNS)
        key = sql.SQL(", ").join(map(sql.Identifier, ("id", *COLUMNS[:4])))
        connection.execute(
            sql.SQL("CREATE TABLE {} (id int, n int, {}, PRIMARY KEY ({}))").format(
                sql.Identifier(SCHEMA, WIDE), listed, key
            )
        )
    change(pipeline, 0)


def change(pipeline: Pipeline, first: int) -> None:
    """Insert three rows into each table; update one earlier row and delete another."""
    with pipeline.connect() as connection:
        for table in (*TABLES, WIDE):
            wide = len(COLUMNS) if table == WIDE else 1
            marks = sql.SQL(", ").join([sql.SQL("concat('v', g, ' ${env:HOME}')")] * wide)
            relation = sql.Identifier(SCHEMA, table)
            connection.execute(
                sql.SQL("INSERT INTO {} SELECT g, 0, {} FROM generate_series({}, {}) g").format(
                    relation, marks, first, first + 2
                )
            )
            connection.execute(
                sql.SQL("UPDATE {} SET n = n + 1 WHERE id = {}").format(relation, first - 3)
            )
            connection.execute(sql.SQL("DELETE FROM {} WHERE id = {}").format(relation, first - 2))
        connection.execute(
            sql.SQL("INSERT INTO {} VALUES ({}, 7, 'of the twin')").format(
                sql.Identifier(TWIN, "T1"), first
            )
        )


def source(pipeline: Pipeline, table: str) -> dict[int, Row]:
    """Return a table's rows in Postgres, by id."""
    with pipeline.connect() as connection:
        cursor = connection.execute(
            sql.SQL("SELECT * FROM {}").format(sql.Identifier(SCHEMA, table))
        )
        names = [column.name for column in cursor.description or ()]
        rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    return {row["id"]: row for row in rows}


def lake(pipeline: Pipeline, table: str) -> dict[int, Row]:
    """Return a table's rows in the lake, by id."""
    rows = pipeline.lake_rows(table)
    assert len({row["id"] for row in rows}) == len(rows)
    return {
        row["id"]: {name: value for name, value in row.items() if name != "_cdc_offset"}
        for row in rows
    }
