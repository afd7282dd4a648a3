"""``wal2lake init``: a configuration file to start from."""

from typing import Annotated

import typer

from cdc.cli.options import DEFAULT_CONFIG, ConfigOption
from cdc.errors import CdcError, ErrorKind

TEMPLATE = """\
# wal2lake: keeps Delta Lake tables equal to Postgres tables.
# All keys: docs/reference/configuration.md. Relative paths are relative to this file.
# Every key can also come from the environment: WAL2LAKE_SOURCE__PASSWORD is source.password.

source:
{url}  # The password belongs into WAL2LAKE_SOURCE__PASSWORD, or into a file:
  # password_file: /run/secrets/postgres-password
  # Patterns schema.table; * and ? stand for any characters.
  tables:
    - {tables}

lake:
  # Tables lie at <path>/<schema>/<table>, plain Delta tables.
  path: lake

# Servers that are not named here are started by `wal2lake up` on this machine.
# kafka:
#   bootstrap_servers: broker:9092
# connect:
#   url: http://connect:8083
# registry:
#   url: http://registry:8080

# spark:
#   master: local[*]
#   driver_memory: 2g

# Everything the embedded servers and the job keep, but for the lake.
state_dir: .wal2lake
"""

EMBEDDED = """\
  # Without a URL an embedded Postgres is started: good for a first look.
  # url: postgresql://user@host:5432/database
"""

UrlOption = Annotated[
    str | None,
    typer.Option(
        "--source-url", metavar="URL", help="postgresql://user@host:5432/database, no password."
    ),
]
TablesOption = Annotated[str, typer.Option("--tables", help="Pattern schema.table.")]
ForceOption = Annotated[bool, typer.Option("--force", help="Overwrite a file that is there.")]


def init(
    config: ConfigOption = DEFAULT_CONFIG,
    source_url: UrlOption = None,
    tables: TablesOption = "public.*",
    force: ForceOption = False,
) -> None:
    if source_url is not None and "@" in source_url and ":" in _user(source_url):
        raise CdcError(
            ErrorKind.CONFIG,
            "the URL of the source contains a password",
            remedy="leave it out and set WAL2LAKE_SOURCE__PASSWORD",
        )
    _write(config, text_for(source_url, tables), force=force)
    typer.echo(f"wrote {config}; next: wal2lake check")


def text_for(source_url: str | None, tables: str) -> str:
    url = EMBEDDED if source_url is None else f"  url: {_yaml_scalar(source_url)}\n"
    return TEMPLATE.format(url=url, tables=_yaml_scalar(tables))


def _yaml_scalar(text: str) -> str:
    """A YAML scalar that cannot be anything but this text (``*`` alone would be an alias)."""
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
            f"{path} is there already",
            remedy="edit it, or overwrite it with --force",
        ) from None
    except OSError as error:
        raise CdcError(
            ErrorKind.CONFIG, f"{path} cannot be written", detail=str(error.strerror).lower()
        ) from None
