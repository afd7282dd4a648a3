"""wal2lake keeps Delta Lake tables equal to Postgres tables.

Programs that read the lake use ``cdc.read``, ``cdc.cut``, ``cdc.changes`` and ``cdc.views``
(cdc/reader.py).
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_OF_THE_READER = frozenset({"changes", "cut", "read", "views"})


def __getattr__(name: str) -> Any:  # noqa: ANN401 - each has a type of its own, in cdc/reader.py
    """Import the reader on first use, because commands must not wait for its engines to load."""
    if name in _OF_THE_READER:
        return getattr(import_module("cdc.reader"), name)
    raise AttributeError(name)
