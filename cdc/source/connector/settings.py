"""Build the connector's configuration from connectors/postgres-source.json, and read it back."""

import json
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from string import Template
from typing import Final

from cdc.errors import CdcError, ErrorKind
from cdc.http_client import without_login
from cdc.source.catalog.catalog import SourceTable
from cdc.source.connector.converter_masks import converter_masks
from cdc.source.connector.snapshot_select import overrides
from cdc.source.server.connection import address, password
from cdc.source.server.finding import Finding
from cdc.source.server.tls import PASSED_ON, tls
from cdc.state.endpoints import REGISTRY_PASSWORD, password_reference
from cdc.state.pipeline import Pipeline
from cdc.tables import CONTROL_SCHEMA, HEARTBEAT, STRUCTURE, ColumnId, TableId

TABLES: Final = "table.include.list"
SNAPSHOT_MODE: Final = "snapshot.mode"
STREAM_ONLY: Final = "no_data"
_FILE: Final = "postgres-source.json"
_PLACES: Final = (
    Path(__file__).parents[3] / "connectors",  # in a checkout
    Path(sys.prefix) / "share" / "wal2lake",  # installed from a wheel
)
_EXACT: Final = "(?-i:"
PASSED_OVER: Final = "wal2lake.passed.over"
"""Our own setting, ignored by the connector: captured tables that its include list omits.

The connector is told to pass them over, as it cannot read them or might fail at them.
"""
COLUMNS: Final = "column.exclude.list"
COLUMNS_PASSED_OVER: Final = "wal2lake.passed.over.columns"
"""Our own setting: excluded columns that would arrive if the connector could read them."""
FIRST: Final = "wal2lake.first.snapshot"
"""Our own setting: who reads the tables first, if it is not the connector."""
_OPTIONAL: Final = (
    COLUMNS,  # an empty list is not the same as no list
    "driver.pemKeyAlgorithm",
    *(
        f"{of}.converter.apicurio.{name}"
        for of in ("key", "value")
        for name in ("auth.username", "auth.password", "rest.request.ssl.ca-bundle.location")
    ),
    *(f"database.{name}" for name in PASSED_ON),
)


def settings(
    pipeline: Pipeline,
    tables: list[SourceTable],
    *,
    placeholder: str,
    snapshot: bool = True,
    first: str = "",
) -> dict[str, str]:
    """Return the connector's whole configuration, with values as Kafka Connect takes them.

    ``tables`` are the captured tables, ``placeholder`` stands for unchanged large values. The
    password is a reference that the worker resolves, if possible. Without ``snapshot`` the
    connector creates its slot and streams from there; ``first`` says who reads the tables, if it
    is the lake's first epoch. Raises CONFIG for an unsupported URL.
    """
    values = _values(pipeline, tables) | {"placeholder": placeholder}
    filled = {key: Template(text).substitute(values) for key, text in _template().items()}
    given = {key: text for key, text in filled.items() if text or key not in _OPTIONAL}
    mode = {} if snapshot else {SNAPSHOT_MODE: STREAM_ONLY}
    if first:
        mode[FIRST] = first
    masks = converter_masks(pipeline, tables, placeholder)
    return with_passed_over(
        given | masks | overrides(tables) | mode, {t.table for t in tables if t.passed_over}
    )


def _values(pipeline: Pipeline, tables: list[SourceTable]) -> dict[str, str]:
    """Return the values of the placeholders in the template of the configuration."""
    config, endpoints = pipeline.config, pipeline.endpoints
    source = address(config.connect.source_url or endpoints.source_url)
    return {
        "host": source.host,
        "port": str(source.port),
        "user": source.user,
        "database": source.database,
        **tls(config, endpoints.source_url),
        "password": _password(pipeline),
        "name": pipeline.name,
        "tables": _list(t.table for t in tables),
        "excluded_columns": ",".join(_excluded(tables)),
        **_registry(pipeline),
    }


def _registry(pipeline: Pipeline) -> dict[str, str]:
    """Return how the converters reach the registry; values that do not apply are empty."""
    config = pipeline.config
    url = config.connect.registry_url or without_login(pipeline.endpoints.registry)
    ca_file = config.connect.registry_ca_file or config.registry.ca_file
    secret = config.connect.registry_password or password_reference(
        config.state_dir, REGISTRY_PASSWORD
    )
    return {
        "registry": url.rstrip("/"),
        "registry_user": config.registry.user or "",
        "registry_password": secret if config.registry.user else "",
        "registry_ca": str(ca_file or ""),
    }


def with_passed_over(
    configuration: Mapping[str, str], tables: Collection[TableId]
) -> dict[str, str]:
    """Return the configuration with the same captured tables, but ``tables`` passed over."""
    others = {key: text for key, text in configuration.items() if key != PASSED_OVER}
    sent = configured_tables(configuration) - set(tables)
    named = {PASSED_OVER: ",".join(map(pattern, sorted(tables)))} if tables else {}
    return others | {TABLES: _list(sorted(sent))} | named


def with_columns_passed_over(
    configuration: Mapping[str, str], columns: Collection[ColumnId]
) -> dict[str, str]:
    """Return the configuration with these columns excluded, besides those that never arrive."""
    before = configuration.get(COLUMNS_PASSED_OVER, "").split(",")
    never = [name for name in configuration.get(COLUMNS, "").split(",") if name not in before]
    now = [pattern(column.table, column.name) for column in sorted(columns)]
    lists = {COLUMNS: ",".join(filter(None, never + now)), COLUMNS_PASSED_OVER: ",".join(now)}
    others = {key: text for key, text in configuration.items() if key not in lists}
    return others | {key: text for key, text in lists.items() if text}


def clear_password(pipeline: Pipeline) -> Finding | None:
    """Return a warning if the connector's configuration holds the source's password in clear."""
    if pipeline.config.connect.url is None or pipeline.config.connect.source_password:
        return None
    if not password(pipeline.endpoints.source_url):
        return None
    return Finding.warning(
        "connect.source_password",
        "is not set: Kafka Connect stores the source's password in clear in its topic, and shows "
        "it to everyone who can query it",
        remedy="set it to a reference that the worker resolves, such as "
        "${file:/run/secrets/pg:password}; see connectors/README.md",
    )


def pattern(table: TableId, *column: str) -> str:
    """Return the regular expression for exactly this table, or column, in a connector's list.

    The connector ignores case in its lists, except inside the group.
    """
    names = "[.]".join(map(_literal, (table.schema, table.name, *column)))
    return f"{_EXACT}{names})"


def configured_tables(configuration: Mapping[str, str] | None) -> frozenset[TableId]:
    """Return the tables that a configuration captures, without our own control tables.

    Tables that the connector passes over are included. The set is empty without a configuration.
    """
    listed = _tables((configuration or {}).get(TABLES, ""))
    return frozenset(t for t in listed if t.schema != CONTROL_SCHEMA) | passed_over_tables(
        configuration
    )


def passed_over_tables(configuration: Mapping[str, str] | None) -> frozenset[TableId]:
    """Return the captured tables that the connector passes over, sending nothing of them."""
    return frozenset(_tables((configuration or {}).get(PASSED_OVER, "")))


def columns_passed_over(configuration: Mapping[str, str] | None) -> frozenset[ColumnId]:
    """Return the columns that would arrive, but are passed over by the connector."""
    return _columns((configuration or {}).get(COLUMNS_PASSED_OVER, ""))


def excluded_columns(configuration: Mapping[str, str]) -> frozenset[ColumnId]:
    """Return all columns that are excluded from the connector's events."""
    return _columns(configuration.get(COLUMNS, ""))


def _columns(listed: str) -> frozenset[ColumnId]:
    names = _listed(listed)
    return frozenset(ColumnId(TableId(schema, table), name) for schema, table, name in names)


def _list(tables: Iterable[TableId]) -> str:
    return ",".join(map(pattern, [HEARTBEAT, STRUCTURE, *tables]))


def _tables(listed: str) -> Iterator[TableId]:
    yield from (TableId(schema, table) for schema, table in _listed(listed))


def _listed(listed: str) -> Iterator[list[str]]:
    """Yield the unescaped names in each pattern of a list."""
    # Connectors of earlier versions have patterns without the group.
    plain = (text.removeprefix(_EXACT).removesuffix(")") for text in listed.split(",") if text)
    yield from (list(map(_name, text.split("[.]"))) for text in plain)


def _name(literal: str) -> str:
    """Return the name that ``_literal`` turned into a regular expression."""
    return re.sub(r"\\x\{([0-9a-f]+)\}", lambda code: chr(int(code[1], 16)), literal)


def with_excluded(configuration: Mapping[str, str], table: SourceTable) -> dict[str, str]:
    """Return the configuration with all columns of the table excluded that do not arrive.

    The list may lack a new column.
    """
    listed = [name for name in configuration.get(COLUMNS, "").split(",") if name]
    more = [name for name in _excluded([table]) if name not in listed]
    return {**configuration, COLUMNS: ",".join(listed + more)} if more else dict(configuration)


def _excluded(tables: list[SourceTable]) -> list[str]:
    """Return patterns of columns that arrive never, or only by snapshot or only by stream.

    Those that ``source.columns`` drops are left out by the converter, with new ones of such names.
    """
    return [
        pattern(table.table, column.name)
        for table in tables
        for column in table.columns
        if not column.arrives and not column.mask
    ]


def _literal(name: str) -> str:
    """Return a name as a regular expression, with special characters, such as commas, as codes."""
    return re.sub(r"[^A-Za-z0-9_]", lambda sign: f"\\x{{{ord(sign[0]):x}}}", name)


def _password(pipeline: Pipeline) -> str:
    """Return a reference to our own file for an embedded worker, else what is configured for it."""
    config = pipeline.config
    if config.connect.url is None:
        return password_reference(config.state_dir)
    return config.connect.source_password or password(pipeline.endpoints.source_url)


@cache
def _template() -> dict[str, str]:
    for place in _PLACES:
        if (place / _FILE).is_file():
            template: dict[str, str] = json.loads((place / _FILE).read_text())
            return template
    raise CdcError(
        ErrorKind.PREREQUISITE,
        f"{_FILE} is missing from this installation",
        remedy="reinstall wal2lake",
    )
