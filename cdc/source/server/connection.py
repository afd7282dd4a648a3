"""Connect to the source and translate its errors for callers."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import psycopg
from psycopg import conninfo, errors, sql
from psycopg.abc import PQGen
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt

from cdc.errors import CdcError, ErrorKind
from cdc.source.server.connection_refusal import connection_refusal, unknown_host
from cdc.source.server.sqlstate import connection_sqlstates
from cdc.tables import TableId


def identifier(table: TableId) -> sql.Identifier:
    """Return the table's qualified name as quoted SQL."""
    return sql.Identifier(table.schema, table.name)


CONNECT_SECONDS: Final = 10
ANSWER_SECONDS: Final = 150.0
"""Longest silence of a server: longer than any limit that we set in the server itself."""
_ASK_CONNECT_SECONDS: Final = 3
_ASK_ANSWER_SECONDS: Final = 10.0
_Answer = TypeVar("_Answer")
_PORT: Final = 5432
_DATA_EXCEPTION: Final = "22"  # the class of SQLSTATE
_NETWORK: Final = {
    "keepalives": 1,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,  # milliseconds
}
"""A peer that vanishes is detected within a minute, even on an idle connection."""
_SETTINGS: Final = {
    # Row security silently hides rows. With "off" Postgres raises an error instead.
    "row_security": "off",
    # A lock request of ours must not hold up the application's for long.
    "lock_timeout": "10s",
    # Names resolve to the system catalogue.
    "search_path": "pg_catalog",
    # Settings of the role or the database are meant for the application.
    "statement_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "idle_session_timeout": "0",
    "default_transaction_read_only": "off",
    "default_transaction_isolation": "read\\ committed",
}
OPTIONS: Final = " ".join(f"-c {name}={value}" for name, value in _SETTINGS.items())
"""Options every session of ours starts with. If a name occurs twice, the last value counts."""
_LOST: Final = ("08", "57P")
"""SQLSTATE classes of a lost connection. Other OperationalErrors are temporary as well."""
_UNRESOLVED: Final = "failed to resolve host "  # psycopg's own message, always English
_TRANSACTION_TIMEOUT: Final = 170_000  # the first version with this setting


class Connection(psycopg.Connection[tuple[Any, ...]]):
    """Connects to Postgres, and limits how long the server may stay silent.

    The limit applies to each wait: for the next row of a COPY, otherwise for the whole answer.
    When it expires, the connection is closed and the call raises OperationalError.
    """

    answer_seconds: float = ANSWER_SECONDS

    def wait(
        self, gen: PQGen[_Answer], interval: float = 0.1, timeout: float | None = None
    ) -> _Answer:
        """Run ``gen`` as psycopg does, for at most ``answer_seconds`` where no limit is given."""
        limit = self.answer_seconds if timeout is None else timeout
        try:
            return super().wait(gen, interval, limit)
        except errors._WaitTimeout:  # noqa: SLF001 - as ``wait`` documents it
            self.pgconn.finish()
            message = f"no answer within {limit:g} s"
            raise psycopg.OperationalError(message) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Holds the parts of a source URL that may be shown to a user."""

    host: str
    port: int
    user: str
    database: str

    def __str__(self) -> str:
        return f"{self.user}@{self.host}:{self.port}/{self.database}"


def address(url: str) -> Address:
    """Return the displayable parts of a source URL, with libpq's defaults filled in.

    Raises CONFIG if libpq cannot parse the URL; the message quotes nothing of it.
    """
    parts = _parse(url)
    user = str(parts.get("user") or "postgres")
    try:
        port = int(parts.get("port") or _PORT)
    except ValueError:
        raise _not_an_url() from None
    return Address(
        host=str(parts.get("host") or "localhost"),
        port=port,
        user=user,
        database=str(parts.get("dbname") or user),
    )


def parameters(url: str) -> dict[str, str]:
    """Return every libpq parameter in the URL, secrets included. Raises like ``address``."""
    return {name: str(value) for name, value in _parse(url).items()}


def password(url: str) -> str:
    """Return the password in the URL, or an empty string. Raises like ``address``."""
    return str(_parse(url).get("password") or "")


def connect(
    url: str,
    *,
    answer_seconds: float = ANSWER_SECONDS,
    **parameters: Any,  # noqa: ANN401 - libpq's parameters
) -> Connection:
    """Open an autocommit connection whose server may stay silent for ``answer_seconds``.

    A connection attempt that times out is repeated once. Raises UNREACHABLE if no server answers
    or it accepts no connections at the moment, SOURCE_NOT_READY if it refuses this connection.
    """
    where = address(url)
    settings = {**_settings(where), **parameters}
    # A process that was suspended finds the timeout expired although the server has answered.
    once_more = Retrying(
        stop=stop_after_attempt(2),
        retry=retry_if_exception_type(errors.ConnectionTimeout),
        reraise=True,
    )
    try:
        connection: Connection = once_more(Connection.connect, url, autocommit=True, **settings)
        connection.answer_seconds = answer_seconds
        if connection.info.server_version >= _TRANSACTION_TIMEOUT:
            connection.execute("SET transaction_timeout = 0")
    except psycopg.OperationalError as error:
        raise _not_connected(where, error, url, settings) from None
    return connection


def _settings(where: Address) -> dict[str, Any]:
    return {
        **_NETWORK,
        "connect_timeout": CONNECT_SECONDS,
        "application_name": "wal2lake",
        "options": OPTIONS,
        "user": where.user,
        "dbname": where.database,
    }


def connect_to_ask(url: str, **parameters: Any) -> Connection:  # noqa: ANN401 - as ``connect``
    """Open a connection for short queries, with tight time limits. Raises like ``connect``."""
    return connect(
        url,
        connect_timeout=_ASK_CONNECT_SECONDS,
        answer_seconds=_ASK_ANSWER_SECONDS,
        **parameters,
    )


def _not_connected(
    where: Address, error: psycopg.OperationalError, url: str, settings: dict[str, Any]
) -> CdcError:
    text = str(error)
    if text.startswith(_UNRESOLVED):
        return unknown_host(where.host, text)
    sqlstates: Collection[str] = ()
    if error.sqlstate is not None:
        sqlstates = [error.sqlstate]
    elif not isinstance(error, errors.ConnectionTimeout):
        attempt = conninfo.make_conninfo(url, **settings)
        sqlstates = connection_sqlstates(attempt, float(settings["connect_timeout"]))
    return connection_refusal(str(where), where.host, where.port, text, sqlstates)


@contextmanager
def translated(doing: str) -> Iterator[None]:
    """Translate psycopg errors raised inside the block into CdcError.

    ``doing`` begins the message, as in ``creating ...``. Raises TIMEOUT for a lock or statement
    timeout, UNREACHABLE for a lost or overloaded server, SOURCE_NOT_READY for anything else.
    """
    try:
        yield
    except psycopg.Error as error:
        kind, message, remedy = _explained(error)
        raise CdcError(kind, f"{doing}: {message}", detail=_primary(error), remedy=remedy) from None


def _explained(error: psycopg.Error) -> tuple[ErrorKind, str, str]:
    """Return the kind, the message and the remedy of a failed statement."""
    if isinstance(error, errors.InsufficientPrivilege):
        remedy = "have a DBA run connectors/source.sql, or use another role"
        return ErrorKind.SOURCE_NOT_READY, "permission denied", remedy
    if isinstance(error, errors.LockNotAvailable | errors.QueryCanceled):
        remedy = "end the transaction that holds the lock, or retry when the source is less busy"
        return ErrorKind.TIMEOUT, "timed out", remedy
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        lost = error.sqlstate is None or error.sqlstate.startswith(_LOST)
        what = "lost the connection to the source" if lost else "the source cannot do it now"
        return ErrorKind.UNREACHABLE, what, "make sure that Postgres runs and stays up, then retry"
    remedy = "see the Postgres log for the cause, fix it, then retry"
    return ErrorKind.SOURCE_NOT_READY, "Postgres refused the statement", remedy


def _parse(url: str) -> dict[str, Any]:
    try:
        return dict(conninfo.conninfo_to_dict(url))
    except psycopg.ProgrammingError:  # its message may quote the URL
        raise _not_an_url() from None


def _not_an_url() -> CdcError:
    return CdcError(
        ErrorKind.CONFIG,
        "source.url is not a Postgres URL",
        remedy="write it as postgresql://user@host:port/database",
    )


def _primary(error: psycopg.Error) -> str:
    """Return the server's primary message; for data errors, which quote values, the class only."""
    if (error.sqlstate or "").startswith(_DATA_EXCEPTION):
        return f"{type(error).__name__}, SQLSTATE {error.sqlstate}"
    return error.diag.message_primary or (
        str(error) if str(error).startswith("no answer") else type(error).__name__
    )
