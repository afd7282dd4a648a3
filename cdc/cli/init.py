"""``wal2lake init`` writes a configuration file to start from."""

from typing import Annotated

import typer

from cdc.cli.options import DEFAULT_CONFIG, ConfigOption
from cdc.errors import CdcError, ErrorKind

TEMPLATE = """\
# wal2lake: keeps Delta Lake tables equal to Postgres tables.
# All keys: docs/reference/configuration.md. Relative paths are relative to this file.
# Every key can also be set in the environment: WAL2LAKE_SOURCE__PASSWORD is source.password.

source:
{url}  # Put the password into WAL2LAKE_SOURCE__PASSWORD, or into a file:
  # password_file: /run/secrets/postgres-password
  # Patterns schema.table; * matches any text, ? one character.
  tables:
    - {tables}

lake:
  # Each table is a plain Delta table at <path>/<schema>/<table>.
  path: lake

# `wal2lake up` starts every server that is not named here, on this machine.
# kafka:
#   bootstrap_servers: broker:9092
# connect:
#   url: http://connect:8083
# registry:
#   url: http://registry:8080

# spark:
#   master: local[*]
#   driver_memory: 2g

# Everything that the embedded servers and the job keep, except the lake.
state_dir: .wal2lake
"""

EMBEDDED = """\
  # Without a URL, an embedded Postgres is started: good for a first look.
  # url: postgresql://user@host:5432/database
"""

UrlOption = Annotated[
    str | None,
    typer.Option(
        "--source-url",
        metavar="URL",
        help="The source: postgresql://user@host:5432/database, without a password.",
    ),
]
TablesOption = Annotated[
    str, typer.Option("--tables", help="The tables to capture: a pattern schema.table.")
]
ForceOption = Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")]


def init(
    config: ConfigOption = DEFAULT_CONFIG,
    source_url: UrlOption = None,
    tables: TablesOption = "public.*",
    force: ForceOption = False,
) -> None:
    """Write the file; raises CONFIG for a URL with a password and for a file that exists."""
    if source_url is not None and "@" in source_url and ":" in _user(source_url):
        raise CdcError(
            ErrorKind.CONFIG,
            "the URL of the source contains a password",
            remedy="leave it out of the URL and set WAL2LAKE_SOURCE__PASSWORD",
        )
    _write(config, text_for(source_url, tables), force=force)
    typer.echo(f"wrote {config}; next: wal2lake check")


def text_for(source_url: str | None, tables: str) -> str:
    """Return the text of the file; without a URL, with the lines for an embedded Postgres."""
    url = EMBEDDED if source_url is None else f"  url: {_yaml_scalar(source_url)}\n"
    return TEMPLATE.format(url=url, tables=_yaml_scalar(tables))


def _yaml_scalar(text: str) -> str:
    """Quote the text so that YAML reads nothing else (an unquoted ``*`` would be an alias)."""
    return "'" + text.replace("'", "''") + "'"


def _user(url: str) -> str:
    return url.partition("://")[2].rpartition("@")[0]


def _write(path: ConfigOption, text: str, *, force: bool) -> None:
    try:
        with path.open("w" if force else "x") as file:
            file.write(text)
    except FileExistsError:
        raise CdcError(
            ErrorKind.CONFIG,
            f"{path} already exists",
            remedy="edit it, or overwrite it with --force",
        ) from None
    except OSError as error:
        raise CdcError(
            ErrorKind.CONFIG, f"{path} cannot be written", detail=str(error.strerror).lower()
        ) from None
