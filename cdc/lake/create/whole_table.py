"""Makes a table of given rows in one commit: a new table, or one in the place of what was there."""

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa

from cdc.lake.commit.data_file import arrow_schema
from cdc.lake.commit.log_entry import Change, Origin, entry
from cdc.lake.commit.put import put_entry
from cdc.lake.commit.replay import BEFORE_THE_FIRST, LiveFile, TableState
from cdc.lake.commit.row_files import RowFiles
from cdc.lake.commit.snapshot import LogReader
from cdc.lake.commit.table_metadata import Metadata
from cdc.lake.create.first_entry import described_table, marked_table
from cdc.lake.files.file_store import FileStore
from cdc.lake.files.store_of import store_of
from cdc.lake.table.entry_file import LOG

FILE_BYTES: Final = 16 << 20
"""Of the rows of a file in memory: it stays small enough to be written again without Spark."""
_BATCH_ROWS: Final = 50_000


def replace_table(
    path: str,
    fields: Sequence[Mapping[str, Any]],
    properties: Mapping[str, str],
    rows: pa.Table,
    metadata: str,
) -> int:
    """Make these the columns and rows of the table at ``path``; return the commit's version.

    ``fields`` describe the columns as Delta does in a schema, without ids and physical names;
    ``rows`` has them by name. Readers see the old rows or the new ones. Raises TakeMergeError for
    a log that is not understood, CHAIN_BROKEN for one that cannot be read, CONFLICT if another
    commit came between, and ArrowInvalid for rows of other types.
    """
    store, millis = store_of(path), int(time.time() * 1000)
    store.make_folder(LOG)
    before = LogReader(path).newest() if store.names(LOG) else BEFORE_THE_FIRST
    protocol, mapped, named = marked_table(fields, properties)
    described = described_table(mapped, named, millis)
    if before.metadata is not None:
        described["id"] = before.metadata.action["id"]
    files = written(store, Metadata.parse(described), rows)
    store.settle()
    head = ({"protocol": protocol}, {"metaData": described})
    put_entry(store, before.version + 1, whole_entry(head, before, files, metadata, millis))
    return before.version + 1


def written(store: FileStore, metadata: Metadata, rows: pa.Table) -> list[LiveFile]:
    """Write rows to new data files of a table, which no version has yet.

    Raises ArrowInvalid for rows of other types than the table's.
    """
    wanted = arrow_schema(metadata)
    with RowFiles(store, metadata, file_bytes=FILE_BYTES) as writer:
        for part in _parts(rows.select(wanted.names).cast(wanted)):
            writer.add(part)
    return writer.files


def _parts(rows: pa.Table) -> Iterator[pa.Table]:
    for begin in range(0, rows.num_rows, _BATCH_ROWS):
        yield rows.slice(begin, _BATCH_ROWS).combine_chunks()


def whole_entry(
    head: Iterable[Mapping[str, Any]],
    before: TableState,
    files: Sequence[LiveFile],
    metadata: str,
    millis: int,
) -> str:
    """Return the text of the entry that puts files in the place of all that were there.

    ``head`` are the actions that say what the table is from now on.
    """
    change = Change(marked=(), removed=list(before.files.values()), added=files)
    counts = {
        "numOutputRows": sum(file.records for file in files),
        "numTargetFilesAdded": len(files),
        "numTargetFilesRemoved": len(change.removed),
    }
    origin = Origin(
        read_version=before.version,
        millis=millis,
        metadata=metadata,
        transaction=str(uuid4()),
        counts=counts,
    )
    return "".join(map(_line, head)) + entry(change, origin)


def _line(action: Mapping[str, Any]) -> str:
    return f"{json.dumps(action, ensure_ascii=False)}\n"
