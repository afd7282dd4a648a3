"""Reads what the commit of an opened version says of itself.

delta-rs lists a table's history from the newest commit of all, whatever version is opened. So the
entry of the version itself is read.
"""

import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from deltalake import DeltaTable

from cdc.lake.files.store_of import store_of
from cdc.lake.table.entry_file import entry_name

_INFO: Final = "commitInfo"


def commit_info(table: DeltaTable) -> Mapping[str, Any]:
    """Return what the commit of the table's version says; nothing if its entry is gone."""
    try:
        text = store_of(_path(table.table_uri)).read(entry_name(table.version()))
    except FileNotFoundError:
        return {}
    actions = (json.loads(line) for line in text.splitlines() if line.strip())
    return dict(next((action[_INFO] for action in actions if _INFO in action), {}))


def _path(uri: str) -> str:
    parts = urlsplit(uri)
    return unquote(parts.path) if parts.scheme == "file" else uri
