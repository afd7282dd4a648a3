"""A derived table without a lake: its rows are kept step by step, as the job keeps them."""

from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import pyarrow as pa

from cdc.derive.definition.definition import Definition
from cdc.derive.definition.folder import read_definition
from cdc.derive.engine.calculator import Calculator, calculator
from cdc.derive.engine.input import Input
from cdc.derive.engine.net import keep_net
from cdc.derive.scope.of_definition import definition_scope
from cdc.derive.scope.scope import Scope, Whole
from cdc.derive.step.changes import STORED_SCHEMA, Changes, net_rows
from cdc.derive.step.difference import GONE, Difference, difference, typed
from cdc.derive.step.known_changes import Known
from cdc.derive.step.scoped import Kept, recalculate
from cdc.lake.changed.changed_rows import ChangedRows
from cdc.lake.table.merge_plan import COPY, ROW_HASH
from cdc.tables import TableId
from tests.unit.derive.scoped.grammar import SCHEMAS, World


def defined(query: str) -> Definition:
    """Return the definition with this text."""
    definition, problems = read_definition("marts.t.sql", "marts.t.sql", query)
    assert problems == [], query
    assert definition is not None
    return definition


def scope_in_shop(definition: Definition) -> Scope | Whole:
    """Return the scope of a definition over the tables of the grammar."""
    return definition_scope(definition, {table: one.names for table, one in SCHEMAS.items()})


@dataclass
class KeptRows:
    """The stored rows of a definition, and the world at the last cut."""

    definition: Definition
    scope: Scope | Whole
    world: World = field(default_factory=dict)
    stored: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict)

    def build(self, world: World) -> None:
        """Calculate all rows."""
        with calculator(256) as database:
            _load(database, world)
            outputs = database.outputs(self.definition.duckdb)
            found = difference(database, self.definition.duckdb, outputs, (), None)
        self._apply(found.changes, world)

    def step(self, world: World) -> int:
        """Calculate what has changed since the last cut; return how many keys that were."""
        with calculator(256) as database:
            _load(database, world)
            schema = _stored_schema(database, self.definition)
            database.keep("stored", pa.Table.from_pylist(list(self.stored.values()), schema))
            found, keys = self._found(database, world)
        self._apply(found.changes, world)
        assert found.rows == len(self.stored)
        return keys

    def _found(self, database: Calculator, world: World) -> tuple[Difference, int]:
        outputs = database.outputs(self.definition.duckdb)
        if isinstance(self.scope, Whole):
            return difference(database, self.definition.duckdb, outputs, (), "stored"), 0
        kept = Kept(outputs=outputs, stored="stored", match=lambda: None, most_keys=1_000_000)
        changes = _changes(database, self.world, world)
        found = recalculate(database, self.definition, self.scope, changes, kept)
        return found.difference, found.keys

    def rows(self) -> "Counter[str]":
        """Return the rows that are stored."""
        return Counter(map(repr, self.shown()))

    def shown(self) -> list[dict[str, Any]]:
        """Return the columns of the rows that are stored."""
        names = self.definition.columns
        return [{name: row[name] for name in names} for row in self.stored.values()]

    def expected(self) -> "Counter[str]":
        """Return the rows that the query gives in the whole world."""
        return Counter(map(repr, self.calculated()))

    def calculated(self) -> list[dict[str, Any]]:
        """Return the rows that the query gives in the whole world, in the lake's types."""
        with calculator(256) as database:
            _load(database, self.world)
            outputs = database.outputs(self.definition.duckdb)
            return [*database.rows(typed(self.definition.duckdb, outputs)).to_pylist()]

    def _apply(self, changes: pa.Table, world: World) -> None:
        for row in changes.to_pylist():
            handle = row[ROW_HASH], row[COPY]
            if row.pop(GONE):
                del self.stored[handle]
            else:
                assert handle not in self.stored
                self.stored[handle] = row
        self.world = world


def _stored_schema(database: Calculator, definition: Definition) -> pa.Schema:
    """Return the schema of the stored rows."""
    outputs = database.outputs(definition.duckdb)
    empty = database.rows(f"{typed(definition.duckdb, outputs)} LIMIT 0").schema
    return empty.append(pa.field(ROW_HASH, pa.string())).append(pa.field(COPY, pa.int64()))


def _load(database: Calculator, world: World) -> None:
    for table in SCHEMAS:
        database.load(table, table_of(world, table))


def _changes(database: Calculator, before: World, now: World) -> Changes:
    """Give all rows as removed and added: most of them have not changed."""
    rows = {
        table: ChangedRows(removed=table_of(before, table), added=table_of(now, table))
        for table in SCHEMAS
        if before[table] is not now[table]
    }
    database.run(f"CREATE SCHEMA {STORED_SCHEMA}")
    for table, one in rows.items():
        keep_net(database, one, *net_rows(table))
    return Changes(
        rows={table: Known(Input("", 0), 1, one) for table, one in rows.items()},
        columns={table: schema.names for table, schema in SCHEMAS.items()},
    )


def table_of(world: World, table: TableId) -> pa.Table:
    """Return the rows of a table, as the lake has them."""
    rows = [
        {**row, "amount": Decimal(row["amount"])} if row.get("amount") is not None else row
        for row in world[table]
    ]
    return pa.Table.from_pylist(rows, SCHEMAS[table])
