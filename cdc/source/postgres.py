"""A connection to the source, and what its errors mean to a caller."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import psycopg
from psycopg import conninfo, errors
from psycopg.abc import PQGen
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt

from cdc.errors import CdcError, ErrorKind
from cdc.source.refusals import refusal, unknown_host
from cdc.source.sqlstate import states

CONNECT_SECONDS: Final = 10
ANSWER_SECONDS: Final = 150.0
"""How long a server may say nothing: longer than any limit that it is given itself."""
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
"""A peer that is gone without a word is found out after a minute, also while nobody asks."""
_SETTINGS: Final = {
    # Row security hides rows silently unless it is off: then Postgres refuses instead.
    "row_security": "off",
    # No lock of ours queues up before the application's for long.
    "lock_timeout": "10s",
    # Names mean what the catalogue says.
    "search_path": "pg_catalog",
    # What role or database are set to is meant for the application.
    "statement_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "idle_session_timeout": "0",
    "default_transaction_read_only": "off",
    "default_transaction_isolation": "read\\ committed",
}
OPTIONS: Final = " ".join(f"-c {name}={value}" for name, value in _SETTINGS.items())
"""What a session of ours begins with; of two of one name the last counts."""
_GONE: Final = ("08", "57P")
"""Classes of SQLSTATE by which a server takes leave; others of an OperationalError pass too."""
_UNRESOLVED: Final = "failed to resolve host "  # psycopg's words, which are English
_TRANSACTION_TIMEOUT: Final = 170_000  # the first version that has one


class Connection(psycopg.Connection[tuple[Any, ...]]):
    """A connection whose server may not stay silent for ever.

    Each wait for it has a limit: of a COPY that for the next row, of all else that for the answer.
    When it is over the connection is closed, and what was asked raises OperationalError.
    """

    answer_seconds: float = ANSWER_SECONDS

    def wait(
        self, gen: PQGen[_Answer], interval: float = 0.1, timeout: float | None = None
    ) -> _Answer:
        limit = self.answer_seconds if timeout is None else timeout
        try:
            return super().wait(gen, interval, limit)
        except errors._WaitTimeout:  # noqa: SLF001 - as ``wait`` documents it
            self.pgconn.finish()
            message = f"no answer within {limit:g} s"
            raise psycopg.OperationalError(message) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """The parts of a source URL that may be shown."""

    host: str
    port: int
    user: str
    database: str

    def __str__(self) -> str:
        return f"{self.user}@{self.host}:{self.port}/{self.database}"


def address(url: str) -> Address:
    """Raises CONFIG for an URL that libpq does not understand; shows nothing of it."""
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
    """All that it says, secrets too. Raises as ``address``."""
    return {name: str(value) for name, value in _parse(url).items()}


def password(url: str) -> str:
    return str(_parse(url).get("password") or "")


def connect(
    url: str,
    *,
    answer_seconds: float = ANSWER_SECONDS,
    **parameters: Any,  # noqa: ANN401 - libpq's parameters
) -> Connection:
    """Open an autocommit connection, on which the server may be silent for ``answer_seconds``.

    Raises UNREACHABLE when no server answers or it takes no connection now, SOURCE_NOT_READY when
    one answers and refuses. Where the time is over, it is tried once more before it is said that
    none does.
    """
    where = address(url)
    settings: dict[str, Any] = {
        **_NETWORK,
        "connect_timeout": CONNECT_SECONDS,
        "application_name": "wal2lake",
        "options": OPTIONS,
        "user": where.user,
        "dbname": where.database,
        **parameters,
    }
    # A process that stood still meanwhile finds its time over, and the server may have answered.
    once_more = Retrying(
        stop=stop_after_attempt(2),
        retry=retry_if_exception_type(errors.ConnectionTimeout),
        reraise=True,
    )
    try:
        made: Connection = once_more(Connection.connect, url, autocommit=True, **settings)
        made.answer_seconds = answer_seconds
        if made.info.server_version >= _TRANSACTION_TIMEOUT:
            made.execute("SET transaction_timeout = 0")
    except psycopg.OperationalError as error:
        raise _not_connected(where, error, url, settings) from None
    return made


def connect_to_ask(url: str, **parameters: Any) -> Connection:  # noqa: ANN401 - as ``connect``
    """Open a connection for short questions, for whose answers nothing else is to wait for long."""
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
    found: Collection[str] = ()
    if error.sqlstate is not None:
        found = [error.sqlstate]
    elif not isinstance(error, errors.ConnectionTimeout):
        tried = conninfo.make_conninfo(url, **settings)
        found = states(tried, float(settings["connect_timeout"]))
    return refusal(str(where), where.host, where.port, text, found)


@contextmanager
def translated(doing: str) -> Iterator[None]:
    """Errors of statements inside, in our terms. ``doing`` begins the message: ``creating ...``."""
    try:
        yield
    except errors.InsufficientPrivilege as error:
        raise CdcError(
            ErrorKind.SOURCE_NOT_READY,
            f"{doing}: the role may not",
            detail=_primary(error),
            remedy="let a DBA run connectors/source.sql, or use another role",
        ) from None
    except (errors.LockNotAvailable, errors.QueryCanceled) as error:
        raise CdcError(
            ErrorKind.TIMEOUT,
            f"{doing}: waited too long",
            detail=_primary(error),
            remedy="end the transaction that holds the lock, or try again when the source is calm",
        ) from None
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        gone = error.sqlstate is None or error.sqlstate.startswith(_GONE)
        raise CdcError(
            ErrorKind.UNREACHABLE,
            f"{doing}: the source {'is gone' if gone else 'cannot do it now'}",
            detail=_primary(error),
            remedy="see that Postgres runs and stays up, and ask for it again",
        ) from None
    except psycopg.Error as error:
        raise CdcError(
            ErrorKind.SOURCE_NOT_READY,
            f"{doing}: refused by Postgres",
            detail=_primary(error),
            remedy="see Postgres's log for what it refused, put it right, and ask for it again",
        ) from None


def _parse(url: str) -> dict[str, Any]:
    try:
        return dict(conninfo.conninfo_to_dict(url))
    except psycopg.ProgrammingError:  # its message can quote the URL
        raise _not_an_url() from None


def _not_an_url() -> CdcError:
    return CdcError(
        ErrorKind.CONFIG,
        "source.url is not a Postgres URL",
        remedy="write it as postgresql://user@host:port/database",
    )


def _primary(error: psycopg.Error) -> str:
    """The server's own sentence, which names objects; of data it quotes the values."""
    if (error.sqlstate or "").startswith(_DATA_EXCEPTION):
        return f"{type(error).__name__}, SQLSTATE {error.sqlstate}"
    return error.diag.message_primary or (
        str(error) if str(error).startswith("no answer") else type(error).__name__
    )
