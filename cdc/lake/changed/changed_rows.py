"""Finds the rows that differ between two versions of a table: from its files, not from events.

So a change that comes without an event is found too, for instance that of a resnapshot, and a table
needs no key. A data file that is the same in both versions is not read, nor is one that only took
the place of others.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Final, TypeVar

import numpy as np
import pyarrow as pa
import structlog
from pyroaring import BitMap64

from cdc.errors import CdcError, Reason
from cdc.lake.changed.changed_files import FileChange, changed_files
from cdc.lake.changed.read_columns import queried_schema, stored_columns
from cdc.lake.changed.unknown import UnknownChangesError
from cdc.lake.commit.combined import CombineError, opened
from cdc.lake.commit.marks import DeletedRows
from cdc.lake.commit.protocol import TakeMergeError
from cdc.lake.commit.replay import LiveFile
from cdc.lake.files.file_store import FileStore, StoreError
from cdc.lake.files.row_file import RowFile
from cdc.lake.files.store_of import store_of

logger = structlog.get_logger(__name__)
_Known = TypeVar("_Known")
_UNKNOWN: Final = (
    UnknownChangesError,
    TakeMergeError,
    CombineError,
    OSError,
    pa.ArrowException,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
)
"""What is raised where something is gone, damaged, or not known here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedRows:
    """Holds the rows by which a version differs from an older one.

    A row that only moved from one file to another may be in both: what has changed is what is left
    when equal rows are struck out in pairs. Then ``old`` without ``removed`` and with ``added`` is
    ``new``, each row as often as it is there.
    """

    removed: pa.Table
    added: pa.Table


@dataclass(frozen=True, slots=True, kw_only=True)
class _Places:
    """Says by number which rows of one data file differ."""

    file: LiveFile
    removed: BitMap64
    added: BitMap64

    def __len__(self) -> int:
        return len(self.removed) + len(self.added)


def changed_rows(
    path: str, old: int, new: int, columns: Sequence[str], most: int
) -> ChangedRows | None:
    """Return the rows by which version ``new`` of the table at ``path`` differs from ``old``.

    Both tables have these ``columns``, at least one, in this order, and the schema with which
    delta-rs's QueryBuilder returns them: texts and bytes are views (``string_view``), also in
    arrays.

    Returns None where the caller has to read all rows instead: more than ``most`` rows differ; a
    version, or a file that is needed, exists no more; a column has changed, or the table was
    created anew within its log; or the table has what is not known here. Which of them it was is
    logged. Raises StoreError as the table's store does, ValueError without columns.

    Both are versions of one log: whether another has taken its place is not seen here.
    """
    if not columns:
        raise ValueError("rows without columns are all the same")
    work = partial(_changed_rows, store_of(path), old, new, columns, most)
    return _if_known(work, path)


def count_changed(path: str, old: int, new: int) -> int | None:
    """Return how many rows ``changed_rows`` returns, removed and added, without reading them.

    Only the log and deletion vectors are read. Returns None where these do not tell.
    """
    store = store_of(path)

    def work() -> int:
        return sum(map(len, _places(store, changed_files(store, old, new).files)))

    return _if_known(work, path)


def _if_known(work: Callable[[], _Known], path: str) -> _Known | None:
    try:
        return work()
    except StoreError:
        raise
    except _UNKNOWN as error:
        reason = f"{type(error).__name__}: {error}"
    except CdcError as error:
        if error.reason is not Reason.TABLE_UNREADABLE:
            raise
        reason = str(error)
    logger.info("changed rows are not known", path=path, reason=reason)
    return None


def _changed_rows(
    store: FileStore, old: int, new: int, columns: Sequence[str], most: int
) -> ChangedRows:
    found = changed_files(store, old, new)
    stored = stored_columns(found.described, columns)
    places = _places(store, found.files)
    if (count := sum(map(len, places))) > most:
        raise UnknownChangesError(f"{count} rows differ, more than {most}")
    schema = queried_schema(columns, stored)
    removed, added = [schema.empty_table()], [schema.empty_table()]
    for one in places:
        with opened(store, one.file) as parquet:
            file = RowFile(parquet, stored)
            removed.append(_read(file, one.removed, schema))
            added.append(_read(file, one.added, schema))
    return ChangedRows(removed=pa.concat_tables(removed), added=pa.concat_tables(added))


def _read(file: RowFile, rows: BitMap64, schema: pa.Schema) -> pa.Table:
    found = file.read(np.fromiter(rows, dtype=np.int64, count=len(rows)))
    return pa.table([c.cast(f.type) for c, f in zip(found, schema, strict=True)], schema=schema)


def _places(store: FileStore, changes: Sequence[FileChange]) -> list[_Places]:
    """Return the rows that differ, file by file; a file of vectors is read once."""
    deleted = DeletedRows(store.path, cache(store.read))
    return list(_differing(changes, deleted))


def _differing(changes: Sequence[FileChange], deleted: DeletedRows) -> Iterator[_Places]:
    for change in changes:
        before, after = _live(change.before, deleted), _live(change.after, deleted)
        file = change.before or change.after
        if file is not None and before != after:
            yield _Places(file=file, removed=before - after, added=after - before)


def _live(file: LiveFile | None, deleted: DeletedRows) -> BitMap64:
    return BitMap64() if file is None else BitMap64(range(file.records)) - deleted.of(file)
