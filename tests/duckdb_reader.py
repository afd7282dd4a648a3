"""DuckDB with Delta's kernel: a reader that the project does not use."""

from importlib.metadata import files

import duckdb


def duckdb_with_delta() -> duckdb.DuckDBPyConnection:
    """Return a connection with the package's extension; nothing is downloaded."""
    extensions = [
        file for file in files("duckdb-extension-delta") or () if file.suffix.startswith(".duck")
    ]
    connection = duckdb.connect(config={"autoinstall_known_extensions": "false"})
    connection.execute(f"LOAD '{extensions[0].locate()}'")
    connection.execute("SET TimeZone = 'UTC'")
    return connection
