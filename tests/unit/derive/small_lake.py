"""A lake of small tables, made without Spark, whose cuts derived tables are brought to."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder, write_deltalake

from cdc.derive.definition.definition import Definition
from cdc.derive.engine.large import Large
from cdc.derive.keep.derived_tables import DerivedTables, Requests
from cdc.derive.step.limits import Limits
from cdc.lake.records.derived_entry import DerivedEntry
from cdc.lake.records.ledger import LedgerRow, TableEntry
from cdc.state import derived_requests
from cdc.tables import TableId

PATIENT = 300.0  # seconds; a cut waits for its tables, also beside much other work

Values = Sequence[Mapping[str, Any]]


@dataclass
class SmallLake:
    """The captured tables by name, each with the schema that it is given."""

    folder: Path
    schemas: Mapping[str, pa.Schema]
    cut: int = 0
    states: dict[str, str] = field(default_factory=dict)
    cross_check: int = 0
    large: Large | None = None
    measured: bool = False
    share: float = 0.2
    lanes: int = 1
    memory_mb: int = 256
    committed_at: datetime | None = None  # the last commit of the next cut

    def path(self, table: TableId) -> str:
        return f"{self.folder}/lake/{table.schema}/{table.name}"

    def limits(self, full_rows: int = 1000, kept_hours: int = 1) -> Limits:
        scratch = self.folder / "scratch"
        return Limits(
            memory_mb=self.memory_mb,
            full_rows=full_rows,
            kept_hours=kept_hours,
            scratch=scratch,
            cross_check=self.cross_check,
            large=self.large,
            measured=self.measured,
            share=self.share,
            lanes=self.lanes,
        )

    def set(self, **rows: Values) -> None:
        """Make tables of the schema ``shop`` hold these rows, in a version of their own."""
        for name, values in rows.items():
            schema = self.schemas[name].append(pa.field("_cdc_offset", pa.int64()))
            data = pa.Table.from_pylist([{**row, "_cdc_offset": 1} for row in values], schema)
            write_deltalake(self.path(TableId("shop", name)), data, mode="overwrite")

    def widen(self, **rows: Values) -> None:
        """Set the rows, and the schema as it is now, in one version."""
        for name, values in rows.items():
            schema = self.schemas[name].append(pa.field("_cdc_offset", pa.int64()))
            data = pa.Table.from_pylist([{**row, "_cdc_offset": 1} for row in values], schema)
            path = self.path(TableId("shop", name))
            write_deltalake(path, data, mode="overwrite", schema_mode="overwrite")

    def row(self) -> LedgerRow:
        """Return the row of the next cut."""
        self.cut += 1
        return LedgerRow(
            cut=self.cut,
            epoch=1,
            lsn=1000 + self.cut,
            committed_at=self.committed_at,
            published_at=datetime.now(UTC),
            transactions=1,
            tables=tuple(self._entry(name) for name in self.schemas),
        )

    def _entry(self, name: str) -> TableEntry:
        table = TableId("shop", name)
        version = -1
        if DeltaTable.is_deltatable(self.path(table)):
            version = DeltaTable(self.path(table)).version()
        return TableEntry(
            table=str(table),
            path=self.path(table),
            version=version,
            offset=0,
            state=self.states.get(name, "streaming"),
            reason="a reason" if name in self.states else "",
        )

    def keep(
        self,
        *definitions: Definition,
        last: Sequence[DerivedEntry] = (),
        seconds: float = PATIENT,
        full_rows: int = 1000,
        kept_hours: int = 1,
        pauses: Requests | None = None,
    ) -> DerivedTables:
        return DerivedTables(
            definitions,
            self.path,
            self.limits(full_rows, kept_hours),
            last=last,
            rebuilds=derived_requests.rebuilds(self.folder),
            pauses=pauses or derived_requests.pauses(self.folder),
            seconds=seconds,
        )


def defined(name: str, query: str, *inputs: str, **more: object) -> Definition:
    """Return a definition of ``marts.<name>``, as it comes out of a file."""
    facts: dict[str, Any] = {
        "table": TableId("marts", name),
        "file": f"derived/marts.{name}.sql",
        "doc": "",
        "refresh": "incremental",
        "key": (),
        "inputs": tuple(map(TableId.parse, inputs)),
        "columns": (),
        "duckdb": query,
        "postgres": query,
        "hash": query,
    }
    return Definition(**{**facts, **more})


def rows_of(entry: DerivedEntry) -> list[tuple[Any, ...]]:
    """Return the rows at the entry's version, without wal2lake's columns, in a fixed order."""
    table = DeltaTable(entry.path, version=entry.version)
    names = [f.name for f in table.schema().fields if not f.name.startswith("_cdc_")]
    listed = ", ".join(f'"{name}"' for name in names)
    found = QueryBuilder().register("t", table).execute(f"SELECT {listed} FROM t").read_all()
    return sorted((tuple(row.values()) for row in pa.table(found).to_pylist()), key=repr)


def modes(entry: DerivedEntry) -> list[str]:
    """Return how the steps to the table's versions were done, oldest first."""
    history = DeltaTable(entry.path).history()
    return [json.loads(one["userMetadata"])["cost"]["mode"] for one in reversed(history)]


def contents(entry: DerivedEntry) -> bytes:
    """Return all that the table has at the entry's version, its own columns and types included.

    The names of columns in its files are left out, which every table chooses anew.
    """
    table = DeltaTable(entry.path, version=entry.version)
    found = pa.table(QueryBuilder().register("t", table).execute("SELECT * FROM t").read_all())
    columns = [(field.name, str(field.type)) for field in found.schema]
    rows = sorted(repr(row) for row in found.to_pylist())
    return "\n".join([repr(columns), *rows]).encode()


def type_of(entry: DerivedEntry, column: str) -> str:
    """Return Delta's type of a column at the entry's version."""
    fields = DeltaTable(entry.path, version=entry.version).schema().fields
    (found,) = (field.type for field in fields if field.name == column)
    return str(getattr(found, "type", found))
