"""A connection to the source, and what its errors mean to a caller."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import psycopg
from psycopg import conninfo, errors
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt

from cdc.errors import CdcError, ErrorKind

CONNECT_SECONDS: Final = 10
_PORT: Final = 5432
_OPTIONS: Final = "-c row_security=off -c lock_timeout=10s -c search_path=pg_catalog"
"""Row security hides rows silently unless it is off: then Postgres refuses instead. No lock of
ours queues up before the application's for long. Names mean what the catalogue says."""

Connection = psycopg.Connection[tuple[Any, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """The parts of a source URL that may be shown."""

    host: str
    port: int
    user: str
    database: str
    sslmode: str

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
        sslmode=str(parts.get("sslmode") or "prefer"),
    )


def password(url: str) -> str:
    return str(_parse(url).get("password") or "")


def connect(url: str, **parameters: Any) -> Connection:  # noqa: ANN401 - libpq's parameters
    """An autocommit connection.

    Raises UNREACHABLE when no server answers, SOURCE_NOT_READY when one answers and refuses. Where
    the time is over, it is tried once more before it is said that none does.
    """
    where = address(url)
    settings: dict[str, Any] = {
        "connect_timeout": CONNECT_SECONDS,
        "application_name": "wal2lake",
        "options": _OPTIONS,
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
        return once_more(psycopg.connect, url, autocommit=True, **settings)
    except psycopg.OperationalError as error:
        raise _refusal(where, str(error)) from None


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
        raise CdcError(
            ErrorKind.UNREACHABLE,
            f"{doing}: the source is gone",
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


def _refusal(where: Address, text: str) -> CdcError:
    """There is no SQLSTATE while libpq connects; a server that answered says FATAL."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if "FATAL" in text and "starting up" not in text and "too many" not in text:
        return CdcError(
            ErrorKind.SOURCE_NOT_READY,
            f"the source refuses {where}",
            detail=lines[-1].partition("FATAL:")[2].strip() if lines else "",
            remedy="check user, database and pg_hba.conf; the password is given by "
            "WAL2LAKE_SOURCE__PASSWORD or source.password_file",
        )
    return CdcError(
        ErrorKind.UNREACHABLE,
        f"no Postgres answers at {where.host}:{where.port}",
        detail=lines[-1] if lines else "",
        remedy="start it, or correct source.url",
    )


def _primary(error: psycopg.Error) -> str:
    """The server's own sentence: it names objects, never values of rows in what we run."""
    return error.diag.message_primary or type(error).__name__
