"""Keep definitions in a small lake through several cuts, and compare each with another text."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa
from deltalake import DeltaTable

from cdc.client.derived.verify import plain
from cdc.derive.definition.definition import Definition
from cdc.derive.definition.folder import read_definition
from cdc.derive.scope.of_definition import definition_scope
from cdc.derive.scope.scope import Scope
from cdc.lake.records.derived_entry import DerivedEntry
from cdc.tables import TableId
from tests.suites.filed_lake import FiledLake
from tests.unit.derive.small_lake import rows_of

SCOPED: Final = "by its scope key"
WHOLE: Final = "as a whole"
REFUSED: Final = "refused"
_MANY: Final = "the changes lead to a large part of its rows"
Schemas = Mapping[str, pa.Schema]
World = Mapping[str, Sequence[Mapping[str, Any]]]


def defined(queries: Mapping[str, str]) -> dict[str, Definition]:
    """Return the definition of each query that is not refused."""
    return {name: one for name, one in _read(queries).items() if isinstance(one, Definition)}


def _read(queries: Mapping[str, str]) -> dict[str, Definition | str]:
    """Return the definition of each query, or the first problem that it has."""
    found: dict[str, Definition | str] = {}
    for name, text in queries.items():
        file = f"marts.{name}.sql"
        one, problems = read_definition(file, file, text)
        found[name] = problems[0].message if one is None else one
    return found


def classes(queries: Mapping[str, str], schemas: Schemas) -> dict[str, str]:
    """Return how each query is kept: by which scope key, why as a whole, or why it is refused."""
    columns = {TableId("shop", name): schema.names for name, schema in schemas.items()}
    return {name: _class(one, columns) for name, one in _read(queries).items()}


def _class(one: Definition | str, columns: Mapping[TableId, Sequence[str]]) -> str:
    if isinstance(one, str):
        return f"{REFUSED}: {one}"
    scope = definition_scope(one, columns)
    if isinstance(scope, Scope):
        return f"{SCOPED}: {', '.join(scope.columns)}"
    return f"{WHOLE}: {scope.reason}"


def kept_through(
    folder: Path, definitions: Mapping[str, Definition], schemas: Schemas, worlds: Iterable[World]
) -> Iterator[tuple[World, Mapping[str, DerivedEntry]]]:
    """Yield the rows of each cut, and the entries of all derived tables at it."""
    # A file that is written anew has its rows twice in what has changed, as removed and as added.
    lake = FiledLake(folder, schemas, share=2)
    with closing(lake.keep(*definitions.values(), full_rows=10**9)) as tables:
        for world in worlds:
            lake.set(**world)
            entries = dict(zip(definitions, tables.entries(lake.row()), strict=True))
            assert {e.table: e.reason for e in entries.values() if e.state != "streaming"} == {}
            yield world, entries


def ways(entry: DerivedEntry) -> set[str]:
    """Return how the steps after the first were done that have changed a table."""
    history = DeltaTable(entry.path).history()
    costs = [json.loads(commit["userMetadata"])["cost"] for commit in history]
    return {f"{WHOLE}: {c['why']}" if c["mode"] == "whole" else SCOPED for c in costs[:-1]}


def allowed_ways(kept: str) -> set[str]:
    """Return the ways in which a table of a class may be kept."""
    return {SCOPED, f"{WHOLE}: {_MANY}"} if kept.startswith(SCOPED) else {kept}


def differing(
    world: World, schemas: Schemas, entries: Mapping[str, DerivedEntry], texts: Mapping[str, str]
) -> list[str]:
    """Return the derived tables that have other rows than another text of their query gives."""
    with _loaded(world, schemas) as connection:
        return [
            name
            for name, entry in entries.items()
            if _in_order(rows_of(entry)) != _in_order(connection.execute(texts[name]).fetchall())
        ]


@contextmanager
def _loaded(world: World, schemas: Schemas) -> Iterator[duckdb.DuckDBPyConnection]:
    """Give a DuckDB of its own that has the rows as tables, in Postgres's order of NULL."""
    with duckdb.connect() as connection:
        connection.execute("SET default_null_order = 'nulls_last_on_asc_first_on_desc'")
        connection.execute("SET TimeZone = 'UTC'")
        for name, rows in world.items():
            connection.register("given", pa.Table.from_pylist([*rows], schemas[name]))
            connection.execute(f"CREATE TABLE {name} AS FROM given")
            connection.unregister("given")
        yield connection


def _in_order(rows: Iterable[tuple[Any, ...]]) -> list[str]:
    return sorted(repr([_comparable(value) for value in row]) for row in rows)


def _comparable(value: object) -> object:
    """Return a value of which two divisions of the same numbers are equal."""
    return f"{value:.12g}" if isinstance(value, float) else plain(value)
