"""Tables of every type in one Postgres, to be read without the connector."""

from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from cdc.config import Config, Lake, Source
from cdc.events.schema import Column
from cdc.events.structure.declared import SourceColumn
from cdc.state.endpoints import Endpoints
from tests.kinds import special
from tests.kinds.columns import SCHEMA, SETUP, TABLES, Kind, kind
from tests.kinds.pipeline import Pipeline, Row, different, random_rows

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
        source_url=url, kafka=nowhere, registry=f"http://{nowhere}", connect=f"http://{nowhere}"
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
