"""The connector's configuration: connectors/postgres-source.json with its names filled in."""

import json
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from string import Template
from typing import Final

from cdc.config import Config
from cdc.errors import CdcError, ErrorKind
from cdc.source.catalog.catalog import SourceTable
from cdc.source.connector.snapshot_select import overrides
from cdc.source.server.connection import address, password
from cdc.source.server.finding import Finding
from cdc.source.server.tls import PASSED_ON, tls
from cdc.state.endpoints import Endpoints, password_reference
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
"""A setting of ours, which it does not read: captured tables that its list leaves out."""
COLUMNS: Final = "column.exclude.list"
COLUMNS_PASSED_OVER: Final = "wal2lake.passed.over.columns"
"""Another one: columns in its list that would arrive, if it could read them."""
_OPTIONAL: Final = (
    COLUMNS,  # an empty list means something else than no list
    "driver.pemKeyAlgorithm",
    *(f"database.{name}" for name in PASSED_ON),
)


def settings(
    config: Config,
    endpoints: Endpoints,
    tables: list[SourceTable],
    *,
    placeholder: str,
    snapshot: bool = True,
) -> dict[str, str]:
    """All of them. The password is a reference that the worker resolves, where it can be.

    Without ``snapshot`` the connector makes its slot and streams from there.
    """
    source = address(config.connect.source_url or endpoints.source_url)
    values = {
        "host": source.host,
        "port": str(source.port),
        "user": source.user,
        "database": source.database,
        **tls(config, endpoints.source_url),
        "password": _password(config, endpoints),
        "name": config.name,
        "tables": _list(t.table for t in tables),
        "excluded_columns": ",".join(_excluded(tables)),
        "placeholder": placeholder,
        "registry": (config.connect.registry_url or endpoints.registry).rstrip("/"),
    }
    filled = {key: Template(text).substitute(values) for key, text in _template().items()}
    given = {key: text for key, text in filled.items() if text or key not in _OPTIONAL}
    mode = {} if snapshot else {SNAPSHOT_MODE: STREAM_ONLY}
    return with_passed_over(
        given | overrides(tables) | mode, {t.table for t in tables if t.passed_over}
    )


def with_passed_over(
    configuration: Mapping[str, str], tables: Collection[TableId]
) -> dict[str, str]:
    """The same captured tables, of which the connector's own list leaves out these."""
    others = {key: text for key, text in configuration.items() if key != PASSED_OVER}
    rest = captured(configuration) - set(tables)
    named = {PASSED_OVER: ",".join(map(pattern, sorted(tables)))} if tables else {}
    return others | {TABLES: _list(sorted(rest))} | named


def with_columns_passed_over(
    configuration: Mapping[str, str], columns: Collection[ColumnId]
) -> dict[str, str]:
    """The connector leaves these columns out of its events, beside those that never arrive."""
    before = configuration.get(COLUMNS_PASSED_OVER, "").split(",")
    never = [each for each in configuration.get(COLUMNS, "").split(",") if each not in before]
    now = [pattern(column.table, column.name) for column in sorted(columns)]
    lists = {COLUMNS: ",".join(filter(None, never + now)), COLUMNS_PASSED_OVER: ",".join(now)}
    others = {key: text for key, text in configuration.items() if key not in lists}
    return others | {key: text for key, text in lists.items() if text}


def clear_password(config: Config, endpoints: Endpoints) -> Finding | None:
    """A warning where the connector's configuration holds the source's password as it is."""
    if config.connect.url is None or config.connect.source_password:
        return None
    if not password(endpoints.source_url):
        return None
    return Finding.warning(
        "connect.source_password",
        "is not given: Kafka Connect keeps the source's password in clear, in its topic and for "
        "everybody who may ask it",
        remedy="a reference that the worker resolves, such as ${file:/run/secrets/pg:password}; "
        "see connectors/README.md",
    )


def pattern(table: TableId, *column: str) -> str:
    """Return the regular expression of exactly this table, or column, in a connector's list.

    The connector ignores case in its lists; inside the group it does not.
    """
    names = "[.]".join(map(_literal, (table.schema, table.name, *column)))
    return f"{_EXACT}{names})"


def captured(configuration: Mapping[str, str] | None) -> frozenset[TableId]:
    """The tables a connector was configured for, but for our own; without a connector none.

    With those that it passes over.
    """
    listed = _tables((configuration or {}).get(TABLES, ""))
    return frozenset(t for t in listed if t.schema != CONTROL_SCHEMA) | passed_over(configuration)


def passed_over(configuration: Mapping[str, str] | None) -> frozenset[TableId]:
    """The captured tables of which the connector sends nothing."""
    return frozenset(_tables((configuration or {}).get(PASSED_OVER, "")))


def columns_passed_over(configuration: Mapping[str, str] | None) -> frozenset[ColumnId]:
    """Columns that its events lack, and would have."""
    return _columns((configuration or {}).get(COLUMNS_PASSED_OVER, ""))


def left_out(configuration: Mapping[str, str]) -> frozenset[ColumnId]:
    """All columns that its events lack."""
    return _columns(configuration.get(COLUMNS, ""))


def _columns(listed: str) -> frozenset[ColumnId]:
    found = _listed(listed)
    return frozenset(ColumnId(TableId(schema, table), name) for schema, table, name in found)


def _list(tables: Iterable[TableId]) -> str:
    return ",".join(map(pattern, [HEARTBEAT, STRUCTURE, *tables]))


def _tables(listed: str) -> Iterator[TableId]:
    yield from (TableId(schema, table) for schema, table in _listed(listed))


def _listed(listed: str) -> Iterator[list[str]]:
    """The names in each pattern of a list."""
    # A connector of an earlier version has its names without the group.
    plain = (each.removeprefix(_EXACT).removesuffix(")") for each in listed.split(",") if each)
    yield from (list(map(_name, each.split("[.]"))) for each in plain)


def _name(literal: str) -> str:
    """What ``_literal`` made a regular expression of."""
    return re.sub(r"\\x\{([0-9a-f]+)\}", lambda found: chr(int(found[1], 16)), literal)


def with_excluded(configuration: Mapping[str, str], table: SourceTable) -> dict[str, str]:
    """With all columns of the table in the list that do not arrive: a new one may be missing."""
    listed = [each for each in configuration.get(COLUMNS, "").split(",") if each]
    more = [each for each in _excluded([table]) if each not in listed]
    return {**configuration, COLUMNS: ",".join(listed + more)} if more else dict(configuration)


def _excluded(tables: list[SourceTable]) -> list[str]:
    """Columns that would arrive by snapshot or by stream alone, or never."""
    return [
        pattern(table.table, column.name)
        for table in tables
        for column in table.columns
        if not column.arrives
    ]


def _literal(name: str) -> str:
    """A name as a regular expression; a comma would end it, so it is spelled by its code."""
    return re.sub(r"[^A-Za-z0-9_]", lambda found: f"\\x{{{ord(found[0]):x}}}", name)


def _password(config: Config, endpoints: Endpoints) -> str:
    """An embedded worker reads a file of ours; another one what is configured for it."""
    if config.connect.url is None:
        return password_reference(config.state_dir)
    return config.connect.source_password or password(endpoints.source_url)


@cache
def _template() -> dict[str, str]:
    for place in _PLACES:
        if (place / _FILE).is_file():
            found: dict[str, str] = json.loads((place / _FILE).read_text())
            return found
    raise CdcError(
        ErrorKind.PREREQUISITE,
        f"{_FILE} is not part of this installation",
        remedy="install wal2lake again",
    )
