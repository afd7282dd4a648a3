"""The connector's configuration: connectors/postgres-source.json with its names filled in."""

import json
import re
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from string import Template
from typing import Final

from cdc.config import Config
from cdc.errors import CdcError, ErrorKind
from cdc.source.catalog import SourceTable
from cdc.source.finding import Finding
from cdc.source.postgres import address, password
from cdc.source.snapshot_select import overrides
from cdc.source.tls import KEPT, tls
from cdc.stack.endpoints import Endpoints, password_reference
from cdc.tables import CONTROL_SCHEMA, HEARTBEAT, STRUCTURE, TableId

TABLES: Final = "table.include.list"
SNAPSHOT_MODE: Final = "snapshot.mode"
STREAM_ONLY: Final = "no_data"
_FILE: Final = "postgres-source.json"
_PLACES: Final = (
    Path(__file__).parents[2] / "connectors",  # in a checkout
    Path(sys.prefix) / "share" / "wal2lake",  # installed from a wheel
)
_EXACT: Final = "(?-i:"
_OPTIONAL: Final = (
    "column.exclude.list",  # an empty list means something else than no list
    "driver.pemKeyAlgorithm",
    *(f"database.{name}" for name in KEPT),
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
        "tables": ",".join(map(pattern, [HEARTBEAT, STRUCTURE, *(t.table for t in tables)])),
        "excluded_columns": ",".join(_excluded(tables)),
        "placeholder": placeholder,
        "registry": (config.connect.registry_url or endpoints.registry).rstrip("/"),
    }
    filled = {key: Template(text).substitute(values) for key, text in _template().items()}
    given = {key: text for key, text in filled.items() if text or key not in _OPTIONAL}
    mode = {} if snapshot else {SNAPSHOT_MODE: STREAM_ONLY}
    return given | overrides(tables) | mode


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
    """The tables a connector was configured for, but for our own; without a connector none."""
    listed = (configuration or {}).get(TABLES, "")
    # A connector of an earlier version has its names without the group.
    plain = (each.removeprefix(_EXACT).removesuffix(")") for each in listed.split(",") if each)
    found = (TableId(*map(_name, each.split("[.]"))) for each in plain)
    return frozenset(table for table in found if table.schema != CONTROL_SCHEMA)


def _name(literal: str) -> str:
    """What ``_literal`` made a regular expression of."""
    return re.sub(r"\\x\{([0-9a-f]+)\}", lambda found: chr(int(found[1], 16)), literal)


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
