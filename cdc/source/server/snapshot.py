"""Export a snapshot of the source that holds exactly the commits up to one LSN."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

import psycopg
from psycopg import sql

from cdc.errors import CdcError, ErrorKind
from cdc.events.values.lsn import parse_lsn
from cdc.source.server.connection import connect, translated
from cdc.source.server.slot import PLUGIN

_OPTIONS_IN_BRACKETS: Final = 150_000


@dataclass(frozen=True, slots=True)
class ExportedSnapshot:
    """Names a snapshot that shows exactly the commits up to ``lsn``.

    ``name`` is the one for ``SET TRANSACTION SNAPSHOT``.
    """

    lsn: int
    name: str


@contextmanager
def exported_snapshot(url: str, seconds: float) -> Iterator[ExportedSnapshot]:
    """Export a snapshot, by a temporary slot, that is valid inside the block.

    Raises TIMEOUT if open transactions keep the slot from being created within ``seconds``, and
    whatever ``connect`` and ``translated`` raise.
    """
    slot = f"wal2lake_{secrets.token_hex(6)}"
    doing = "exporting a snapshot"
    with connect(url, replication="database") as connection:
        with translated(doing):
            connection.execute(
                sql.SQL("SET statement_timeout = {}").format(sql.Literal(int(seconds * 1000)))
            )
            row = connection.execute(_command(slot, connection.info.server_version)).fetchone()
        if row is None:
            raise CdcError(ErrorKind.INTERNAL, f"{doing}: Postgres returned no row")
        _, lsn, name, _ = row
        try:
            yield ExportedSnapshot(parse_lsn(str(lsn)), str(name))
        finally:
            with suppress(psycopg.Error):  # it ends with the connection anyway, only a moment later
                connection.execute(sql.SQL("DROP_REPLICATION_SLOT {}").format(sql.Identifier(slot)))


def _command(slot: str, version: int) -> sql.Composed:
    export = "(SNAPSHOT 'export')" if version >= _OPTIONS_IN_BRACKETS else "EXPORT_SNAPSHOT"
    return sql.SQL("CREATE_REPLICATION_SLOT {} TEMPORARY LOGICAL {} {}").format(
        sql.Identifier(slot), sql.Identifier(PLUGIN), sql.SQL(export)
    )
