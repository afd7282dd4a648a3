"""Calculates queries over tables of one moment, in a DuckDB database in memory.

Its settings are part of the meaning of a definition: times are in UTC, NULLs are ordered as in
Postgres, and text is compared byte by byte.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import duckdb
import pyarrow as pa

from cdc.derive.engine.output_types import Output, stored_type
from cdc.derive.sql.printing import GUARDED
from cdc.errors import CdcError, ErrorKind
from cdc.events.values.sql_text import postgres_name, postgres_string
from cdc.tables import TableId

_SETTINGS: Final = {
    "TimeZone": "'UTC'",
    "default_null_order": "'nulls_last_on_asc_first_on_desc'",
    # A query reads what it is given: no files, no variables of this program, no extensions.
    "python_enable_replacements": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}
_CLOSED: Final = {"enable_external_access": "false", "lock_configuration": "true"}
"""Set last: nothing can be set after them."""
_GIVEN: Final = "wal2lake_given"
FAILED: Final[tuple[tuple[type[duckdb.Error], str], ...]] = (
    (duckdb.OutOfMemoryException, "it needs more memory than derived.memory_mb"),
    (duckdb.OutOfRangeException, "a number is out of the range of its type"),
    (duckdb.ConversionException, "a cast rejected a value"),
    (duckdb.InvalidInputException, "a function rejected a value"),
)
"""What an error at run time means. DuckDB's own text can contain values of rows."""


@dataclass(frozen=True, slots=True)
class Calculator:
    """Runs statements in a database; a text that it is given comes from a checked definition."""

    connection: duckdb.DuckDBPyConnection

    def load(self, table: TableId, rows: pa.RecordBatchReader | pa.Table) -> None:
        """Create the table with these rows; what exceeds the memory goes to the disk."""
        self._execute(f"CREATE SCHEMA IF NOT EXISTS {postgres_name(table.schema)}")
        self.keep(named(table), rows)

    def keep(self, name: str, rows: pa.RecordBatchReader | pa.Table) -> None:
        """Create a table with these rows under a quoted name."""
        with self.given(rows) as given:
            self._execute(f"CREATE TABLE {name} AS SELECT * FROM {given}")  # noqa: S608 - our names

    def add(self, name: str, rows: pa.RecordBatchReader | pa.Table) -> None:
        """Insert rows of the same columns into a table that was created."""
        with self.given(rows) as given:
            self._execute(f"INSERT INTO {name} BY NAME SELECT * FROM {given}")  # noqa: S608

    def add_where(
        self, name: str, rows: pa.RecordBatchReader | pa.Table, given: str, condition: str
    ) -> None:
        """Insert the rows that meet a condition, in which they are called ``given``."""
        with self.given(rows) as source:
            chosen = f"SELECT {given}.* FROM {source} AS {given} WHERE {condition}"  # noqa: S608
            self._execute(f"INSERT INTO {name} BY NAME {chosen}")

    @contextmanager
    def given(self, rows: pa.RecordBatchReader | pa.Table) -> Iterator[str]:
        """Let statements read these rows under the name that it gives; a reader's only once."""
        self.connection.register(_GIVEN, rows)
        yield _GIVEN
        self.connection.unregister(_GIVEN)

    def outputs(self, query: str) -> list[Output]:
        """Return the columns of a query and their types in the lake; read no row.

        Raises CONFIG with the engine's words, which are about the query only, for a query that
        does not fit the tables, and for a type that the lake cannot hold.
        """
        return [Output(name, stored_type(name, kind)) for name, kind in self.types(query)]

    def types(self, query: str) -> list[tuple[str, str]]:
        """Return the columns of a query and their types in DuckDB's words, as ``outputs`` does."""
        try:
            described = self.connection.execute(f"DESCRIBE {query}").fetchall()
        except duckdb.Error as error:
            raise _unfit(error) from None
        return [(str(name), str(kind)) for name, kind, *_ in described]

    def run(self, statement: str) -> None:
        """Run a statement without a result."""
        self._execute(statement)

    def rows(self, query: str) -> pa.Table:
        """Return the rows of a query."""
        return self._execute(query).to_arrow_table()

    def values(self, query: str) -> Sequence[tuple[object, ...]]:
        """Return the rows of a query as Python values."""
        return self._execute(query).fetchall()

    def count(self, table: str) -> int:
        """Return how many rows a table has."""
        ((rows,),) = self.values(f"SELECT count(*) FROM {table}")  # noqa: S608 - our names
        return int(str(rows))

    def _execute(self, statement: str) -> duckdb.DuckDBPyConnection:
        try:
            return self.connection.execute(statement)
        except duckdb.Error as error:
            raise _failed(error) from None


@contextmanager
def calculator(
    memory_mb: int, scratch: Path | None = None, *, threads: int | None = None
) -> Iterator[Calculator]:
    """Give an empty database; its files are in ``scratch`` while the block lasts.

    It uses as many ``threads`` as there are cores, unless told.
    """
    if scratch is not None:
        scratch.mkdir(parents=True, exist_ok=True)
    with (
        TemporaryDirectory(dir=scratch, prefix="derived-") as files,
        duckdb.connect() as connection,
    ):
        limits = {"memory_limit": f"'{memory_mb}MB'", "temp_directory": postgres_string(files)}
        if threads is not None:
            limits["threads"] = str(threads)
        for name, value in {**_SETTINGS, **limits, **_CLOSED}.items():
            connection.execute(f"SET {name} = {value}")
        yield Calculator(connection)


def named(table: TableId) -> str:
    """Return the table's name as SQL."""
    return f"{postgres_name(table.schema)}.{postgres_name(table.name)}"


def _failed(error: duckdb.Error) -> CdcError:
    what = next((text for kind, text in FAILED if isinstance(error, kind)), type(error).__name__)
    if isinstance(error, duckdb.InvalidInputException) and GUARDED in str(error):
        _, _, what = str(error).partition(": ")  # our own words, without values
    return CdcError(
        ErrorKind.TABLE_STOPPED,
        f"its query failed: {what}",
        remedy="correct the row or the definition; the table goes on when its inputs change",
    )


def _unfit(error: duckdb.Error) -> CdcError:
    text = str(error).split("\n\nLINE", maxsplit=1)[0]
    _, _, words = text.partition(": ")
    return CdcError(ErrorKind.CONFIG, " ".join((words or text).split()))
