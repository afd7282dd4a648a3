"""Reads ranges of tables by COPY, each reader in a session of its own, all in one snapshot."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Final

from psycopg import sql
from psycopg.pq import TransactionStatus

from cdc.client.moment import enter_snapshot
from cdc.errors import CdcError, ErrorKind
from cdc.lake.commit.row_files import RowFiles
from cdc.operations.first_snapshot.copied_table import CopiedRange, CopiedTable
from cdc.operations.first_snapshot.page_range import PageRange
from cdc.operations.resnapshot.read import refuse_many
from cdc.operations.resnapshot.refused_row import RefusedRow
from cdc.source.rows.copied_texts import copied_texts
from cdc.source.rows.copy import own_rows
from cdc.source.server.connection import Connection, connect, translated
from cdc.tables import TableId

_LOST: Final = frozenset({ErrorKind.UNREACHABLE, ErrorKind.TIMEOUT})
"""A session may have failed for a reason of its own; the snapshot may still be there."""
Read = Callable[[int], None]
"""Called by readers with the number of rows after each block; may wait; may raise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sessions:
    """Opens the readers' sessions: each begins in the snapshot, with all tables locked.

    A reader that locked a table only when it comes to it would wait for an ALTER TABLE that itself
    waits for the other readers.
    """

    url: str
    snapshot: str  # as exported
    tables: Sequence[TableId]
    silence: float  # seconds that the source may say nothing
    salt: str = field(default="", repr=False)  # for the columns that are hashed

    def open(self) -> Connection:
        """Return a session; raises UNREACHABLE, TIMEOUT if a lock does not come, and others."""
        connection = connect(self.url, answer_seconds=self.silence)
        try:
            self._enter(connection)
            with translated("locking the tables"):
                listed = sql.SQL(", ").join(map(own_rows, self.tables))
                connection.execute(sql.SQL("LOCK {} IN ACCESS SHARE MODE").format(listed))
        except BaseException:
            connection.close()
            raise
        return connection

    def _enter(self, connection: Connection) -> None:
        """Enter the snapshot; raises CONFLICT if it is gone, and so the moment."""
        try:
            with translated("entering the snapshot"):
                enter_snapshot(connection, self.snapshot, self.salt)
        except CdcError as error:
            if error.kind is not ErrorKind.SOURCE_NOT_READY:
                raise
            raise CdcError(
                ErrorKind.CONFLICT, "the exported snapshot is gone", detail=error.detail
            ) from None


class Readers:
    """Several readers, each one thread with one session."""

    def __init__(self, sessions: Sessions, pool: ThreadPoolExecutor, read: Read) -> None:
        self._sessions = sessions
        self._pool = pool
        self._read = read
        self._idle: SimpleQueue[Connection] = SimpleQueue()
        self._over = threading.Event()

    def submit(self, table: CopiedTable, pages: PageRange) -> Future[CopiedRange]:
        """Read a range as soon as a reader is free."""
        return self._pool.submit(self._copied, table, pages)

    def open(self, count: int) -> None:
        """Open the sessions."""
        for _ in range(count):
            self._idle.put(self._sessions.open())

    def close(self) -> None:
        """End all readers, and wait for them; what they have not finished is lost."""
        self._over.set()
        self._pool.shutdown(cancel_futures=True)
        while not self._idle.empty():
            self._idle.get().close()

    def _copied(self, table: CopiedTable, pages: PageRange) -> CopiedRange:
        """Read a range; once more in a new session, if this one fails and the snapshot is there."""
        connection = self._idle.get()
        try:
            return self._once(connection, table, pages)
        except CdcError as error:
            if error.kind not in _LOST or self._over.is_set():
                raise
            connection.close()
            connection = self._sessions.open()
            return self._once(connection, table, pages)
        finally:
            self._idle.put(connection)

    def _once(self, connection: Connection, table: CopiedTable, pages: PageRange) -> CopiedRange:
        if connection.closed or connection.info.transaction_status != TransactionStatus.INTRANS:
            raise CdcError(ErrorKind.UNREACHABLE, "the session has failed before")
        rows, refused, copies = 0, list[RefusedRow](), table.copies()
        with RowFiles(table.files, table.metadata) as files:
            for texts in copied_texts(
                connection, table.table, table.target.columns, pages.condition
            ):
                kept, others = table.converted(texts, copies)
                files.add(kept)
                rows += texts.num_rows
                refused += others
                refuse_many([row.reason for row in refused], table.table)
                self._go_on(texts.num_rows)
        return CopiedRange(files.files, rows, refused)

    def _go_on(self, rows: int) -> None:
        if self._over.is_set():
            raise CdcError(ErrorKind.CANCELLED, "the readers were ended")
        self._read(rows)


@contextmanager
def reading(sessions: Sessions, count: int, read: Read) -> Iterator[Readers]:
    """Keep so many readers while the block lasts."""
    with ExitStack() as stack:
        pool = ThreadPoolExecutor(count, thread_name_prefix="snapshot")
        readers = stack.enter_context(closing(Readers(sessions, pool, read)))
        readers.open(count)
        yield readers
