"""Tables of every type in one Postgres, to be read without the connector, and their checks."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from hypothesis import strategies as st

from cdc.client.verify.verdict import TableVerdict, compare_table
from cdc.config import Config, Lake, Source
from cdc.events.schema import Column
from cdc.events.structure.declared import SourceColumn
from cdc.kafka.broker import Broker
from cdc.lake.layout import table_path
from cdc.lake.records.ledger import TableEntry
from cdc.lake.table.merge_plan import REASON
from cdc.source.catalog.catalog import SourceTable, inspect
from cdc.source.server.connection import Connection, connect
from cdc.source.server.printing import READING
from cdc.state import pipeline as pipelines
from cdc.state.endpoints import Endpoints
from cdc.tables import TableId
from tests.kinds import special
from tests.kinds.columns import SCHEMA, SETUP, TABLES, Kind, kind
from tests.kinds.pipeline import Pipeline, Row, different, random_rows
from tests.servers.fixtures import started

ODD = "`%s{c}$"  # a column may have any name
EVERY = {
    f"{table}.{name}{ODD}": found
    for table, kinds in TABLES.items()
    for name, found in kinds.items()
}
LIMITS = {
    f"v_{name}": kind(declared, st.nothing()) for name, (declared, _) in special.LIMITS.items()
}
ALTERED = special.kinds(special.ALTERED)
MORE_KEYS = {
    "a": ("citext", "'Ab' || g"),
    "b": ("ltree", "('a.b' || g)::ltree"),
    "c": ("hstore", """hstore('k"\\ ' || g, nullif(g, 3)::text)"""),
    "d": ("text[]", """ARRAY['a"\\,' || g, NULL, 'NULL']"""),
    "e": ("bytea[]", "ARRAY['\\x00ff'::bytea]"),
    "f": ("date[]", "ARRAY[date '2020-01-01' + g, NULL]"),
    "g": ("money", "g::numeric::money / 8"),
    "h": ("float8", "1.0 / g"),
    "i": ("bool", "g % 2 = 0"),
    "j": ("timestamp", "timestamp '0001-01-01' + g * interval '1 microsecond'"),
    "k": ("oid", "(4294967295 - g)::oid"),
    "l": ('"char"', '(g - 60)::"char"'),
    "m": ("int4range", "int4range(g, g * 2)"),
    "q": ("varchar(20)", "'v' || g"),
    "o": (f"{SCHEMA}.d_blank", "'a'"),
    "p": ("numeric", "g / 3.0"),
}  # fmt: skip
KEYED = {"keyed": special.KEYS, "more_keys": MORE_KEYS}
WHOLE: dict[str, dict[str, Kind]] = {
    "every": EVERY,
    "large": special.kinds(special.LARGE),
    "defaults": special.kinds(special.DEFAULTS),
    "nulls": special.kinds(special.DEFAULTS),
    **{table: special.kinds(columns) for table, columns in KEYED.items()},
}
"""Tables of which everything can be kept."""
READ = (*WHOLE, "limits", "altered")
WORDS = {
    "v_numeric": "decimal(10,2) cannot represent: NaN, infinity, or too many digits",
    "v_date": "date cannot represent: infinity, or a year outside 1 to 9999",
    "v_timestamp": "timestamp_ntz cannot represent: infinity, or a year outside 1 to 9999",
    "v_timestamptz": "timestamp cannot represent: infinity, or a year outside 1 to 9999",
}
EXACT = {"v_far_text", "v_d_numeric", "v_d_text"}
"""Columns whose values Postgres tells apart but the connector's events do not."""


def lake_column(column: SourceColumn) -> Column:
    """Return the lake's column for a column of the source."""
    return Column(column.name, column.type, as_text=column.is_text)


def config_of(folder: Path, url: str) -> Config:
    """Return the configuration of a pipeline that captures all tables."""
    as_text = [f"{SCHEMA}.every.chosen.*_text*", f"{SCHEMA}.*.*far_text"]
    source = Source(url=url, tables=[f"{SCHEMA}.*"], as_text=as_text)
    return Config(source=source, lake=Lake(path=str(folder / "lake")), state_dir=folder)


def endpoints_of(url: str) -> Endpoints:
    """Return endpoints of which only the source answers."""
    nowhere = "127.0.0.1:1"
    return Endpoints(
        source_url=url,
        kafka=Broker(nowhere),
        registry=f"http://{nowhere}",
        connect=f"http://{nowhere}",
    )


def fill(pipeline: Pipeline, number: int) -> None:
    """Create and fill the tables, with so many random rows."""
    pipeline.execute(SETUP)
    pipeline.create("every", EVERY)
    pipeline.insert("every", random_rows(EVERY, number))
    special.create(pipeline)
    columns = ", ".join(f"{name} {declared}" for name, (declared, _) in MORE_KEYS.items())
    values = ", ".join(value for _, value in MORE_KEYS.values())
    pipeline.execute(f"""
        INSERT INTO {SCHEMA}.defaults VALUES (2, 0); INSERT INTO {SCHEMA}.large (id) VALUES (0);
        CREATE TABLE {SCHEMA}.more_keys
               (id int, n int, {columns}, PRIMARY KEY ({", ".join(MORE_KEYS)}));
        INSERT INTO {SCHEMA}.more_keys SELECT g, 0, {values} FROM generate_series(1, 30) g;
        CREATE TABLE {SCHEMA}.empty (id int PRIMARY KEY, "o'{ODD}" text);
        CREATE TABLE {SCHEMA}.only (t text);
        INSERT INTO {SCHEMA}.only VALUES (NULL), (''), ('\\.'), (E'"a",\\r\\n'), ('NULL');
    """)


def unlike(there: dict[int, Row], here: dict[int, Row]) -> dict[int, Any]:
    """Return the rows that differ, by id: Postgres's and the lake's."""
    return {
        number: different(there.get(number), here.get(number))
        for number in there.keys() | here.keys()
        if there.get(number) != here.get(number)
    }


@dataclass(frozen=True, kw_only=True)
class Filled:
    """A lake, and a Postgres with all tables, which are read into the lake."""

    pipeline: Pipeline
    connection: Connection
    tables: dict[str, SourceTable]

    def arriving(self, table: str) -> list[SourceColumn]:
        """Return the columns that arrive in the lake."""
        return [column for column in self.tables[table].columns if column.arrives]

    def path(self, table: str) -> str:
        """Return the table's path in the lake."""
        return table_path(self.pipeline.config, TableId(SCHEMA, table))

    def verdict(self, table: str) -> TableVerdict:
        """Compare the table with the source as ``verify`` does."""
        path = self.path(table)
        entry = TableEntry(
            table=f"{SCHEMA}.{table}",
            path=path,
            version=DeltaTable(path).version(),
            offset=0,
            state="streaming",
        )
        folder = Path(self.pipeline.config.state_dir)
        return compare_table(self.connection, self.tables[table], entry, folder)


@contextmanager
def filled(
    request: pytest.FixtureRequest, factory: pytest.TempPathFactory, number: int
) -> Iterator[Filled]:
    """Yield a Postgres with so many random rows in its tables."""
    with started(request, factory.mktemp("servers"), ("postgres",)) as servers:
        url = servers["postgres"].address
        config = config_of(factory.mktemp("lake"), url)
        pipeline = Pipeline(given=pipelines.Pipeline(config, endpoints_of(url)))
        fill(pipeline, number)
        with connect(url) as connection:
            for name, value in READING.items():
                connection.execute("SELECT set_config(%s, %s, false)", (name, value))
            tables = {table.table.name: table for table in inspect(connection, config).tables}
            yield Filled(pipeline=pipeline, connection=connection, tables=tables)


def assert_equal_to_postgres(pipeline: Pipeline, table: str) -> None:
    """Assert that every value of a table of ``WHOLE`` is in the lake as Postgres prints it."""
    there, here = pipeline.source(table, WHOLE[table]), pipeline.lake(table, WHOLE[table])

    assert len(there) > 1
    assert unlike(there, here) == {}


def assert_verify_agrees(verdict: TableVerdict) -> None:
    """Assert that ``verify`` has compared some rows, and found them equal."""
    assert verdict.comparison.source_rows > 1
    assert verdict.equal


def assert_none_is_refused(pipeline: Pipeline) -> None:
    """Assert that no row of ``WHOLE`` has a reason."""
    assert {row[REASON] for table in WHOLE for row in pipeline.lake_rows(table)} == {None}


def assert_limits_are_reported(pipeline: Pipeline) -> None:
    """Assert that values beyond a limit have a reason each, and that all others are kept."""
    there = pipeline.source("limits", LIMITS)
    rows = {row["id"]: row for row in pipeline.lake_rows("limits")}
    kept = {number for number, row in rows.items() if row[REASON] is None}

    for number, (name, text) in enumerate(special.limit_values(), start=1):
        column, reason = f"v_{name}", rows[number][REASON]
        if column in EXACT or "{NULL" in text:
            assert reason is None, (column, text)
        elif column in WORDS:
            assert reason == f"column {column} holds a value that {WORDS[column]}"
        else:
            assert reason.startswith(f"column {column} holds a value that array<")
            assert " cannot represent: several dimensions, " in reason
    here = pipeline.lake("limits", LIMITS)
    assert 0 in kept
    assert unlike({n: there[n] for n in kept}, {n: here[n] for n in kept}) == {}


def assert_altered_are_reported(pipeline: Pipeline) -> None:
    """Assert what becomes of values that the stream alters."""
    there = pipeline.source("altered", ALTERED)
    rows = {row["id"]: row for row in pipeline.lake_rows("altered")}
    reasons = [(rows[number][REASON] or "")[:9] for number in sorted(rows)]
    here = pipeline.lake("altered", ALTERED)

    assert reasons == ["", "column d ", "column a ", "", ""]
    assert {n for n in there if there[n] != here[n]} == {2, 3}
