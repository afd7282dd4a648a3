"""Makes a second table of the same data files, which outlives what the first does with them.

On a local disk its files are hard links, so that it takes no space while both tables have them.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from uuid import uuid4

from cdc.lake.commit.log_entry import Change, Origin, entry
from cdc.lake.commit.protocol import TakeMergeError
from cdc.lake.commit.put import put_entry
from cdc.lake.commit.replay import LiveFile
from cdc.lake.commit.snapshot import entry_actions
from cdc.lake.files.file_store import FileStore
from cdc.lake.files.store_of import store_of
from cdc.lake.table.entry_file import LOG

_ENTRY: Final = re.compile(r"(\d{20})\.json")


def link_table(table: str, files: Sequence[LiveFile], path: str, origin: Origin) -> None:
    """Make a table at ``path`` of data files in the folder of ``table``, with its columns.

    Nothing is at ``path`` yet. It is complete, and durable, when its one log entry is there.
    """
    source, store, parent = store_of(table), store_of(path), store_of(path.rpartition("/")[0])
    store.make_folder(LOG)
    for file in files:
        store.take(source, file.path)
    for folder in (store, parent):
        folder.settle()
    metadata = {**_newest(source, "metaData"), "id": str(uuid4())}
    head = [{"protocol": _newest(source, "protocol")}, {"metaData": metadata}]
    lines = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in head)
    change = Change(marked=(), removed=(), added=files)
    put_entry(store, 0, lines + entry(change, origin))


def _newest(table: FileStore, action: str) -> Mapping[str, Any]:
    """Return the newest action of this name in the table's log entries."""
    found = next(_actions(table, action), None)
    if found is None:
        raise TakeMergeError(f"its log has no entry with {action}")
    return found


def _actions(table: FileStore, action: str) -> Iterator[Mapping[str, Any]]:
    entries = (found for name in table.names(LOG) if (found := _ENTRY.fullmatch(name)))
    for version in sorted((int(found[1]) for found in entries), reverse=True):
        for actions in entry_actions(table, version):
            if (found := actions.get(action)) is not None:
                yield found
