"""wal2lake: Delta Lake tables that stay equal to Postgres tables.

``cdc.read``, ``cdc.cut`` and ``cdc.views`` are for programs that read the lake (cdc/reader.py).
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_OF_THE_READER = frozenset({"cut", "read", "views"})


def __getattr__(name: str) -> Any:  # noqa: ANN401 - each has a type of its own, in cdc/reader.py
    """What needs an engine is loaded when it is asked for: a command line must not wait for it."""
    if name in _OF_THE_READER:
        return getattr(import_module("cdc.reader"), name)
    raise AttributeError(name)
