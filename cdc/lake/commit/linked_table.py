"""Makes a second table of the same data files, which outlives what the first does with them.

Its files are hard links, so that it takes no space while both tables have them.
"""

import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from cdc.lake.commit.log_entry import Change, Origin, entry
from cdc.lake.commit.protocol import TakeMergeError
from cdc.lake.commit.put import make_durable, store_of
from cdc.lake.commit.replay import LiveFile
from cdc.lake.commit.snapshot import entry_actions
from cdc.lake.table.entry_file import LOG, entry_name

_ENTRY: Final = re.compile(r"\d{20}\.json")


def link_table(table: str, files: Sequence[LiveFile], path: str, origin: Origin) -> None:
    """Make a table at ``path`` of data files in the folder of ``table``, with its columns.

    Nothing is at ``path`` yet. It is complete, and durable, when its one log entry is there. Raises
    TakeMergeError for an object store.
    """
    made, source = Path(path), Path(table)
    store, parent = store_of(path), store_of(str(made.parent))
    (made / LOG).mkdir(parents=True)
    for file in files:
        _link(source / file.path, made / file.path)
    for folder in (store, parent):
        folder.settle()
    metadata = {**_newest(source, "metaData"), "id": str(uuid4())}
    head = [{"protocol": _newest(source, "protocol")}, {"metaData": metadata}]
    lines = "".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in head)
    change = Change(marked=(), removed=(), added=files)
    store.put_if_absent(entry_name(0), (lines + entry(change, origin)).encode())


def _link(source: Path, target: Path) -> None:
    """Link a file, or copy it where the disk has no hard links."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
        make_durable(target)


def _newest(table: Path, action: str) -> Mapping[str, Any]:
    """Return the newest action of this name in the table's log entries."""
    found = next(_actions(table, action), None)
    if found is None:
        raise TakeMergeError(f"its log has no entry with {action}")
    return found


def _actions(table: Path, action: str) -> Iterator[Mapping[str, Any]]:
    entries = (path for path in (table / LOG).iterdir() if _ENTRY.fullmatch(path.name))
    for path in sorted(entries, reverse=True):
        for actions in entry_actions(path):
            if (found := actions.get(action)) is not None:
                yield found
