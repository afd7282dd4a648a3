"""Remembers where the slot of the first snapshot begins: the LSN at which its rows are correct.

A connector that is interrupted during its first snapshot repeats it with the existing slot. Each
table is then read at a later moment of its own, so its rows may already include changes that the
stream sends as well. Only the LSN of the rows reveals this.
"""

import json
from pathlib import Path

from cdc.config import Config
from cdc.source.server import slot
from cdc.source.server.connection import Connection
from cdc.state.atomic_file import write_private
from cdc.state.directory import StateDir, read_json
from cdc.waiting import until

_SECONDS = 60.0


def forget(config: Config) -> None:
    """Forget the LSN; called before a connector creates another slot."""
    _file(config).unlink(missing_ok=True)


def remember(connection: Connection, config: Config) -> None:
    """Wait until the slot is created, and remember where it begins.

    Called as soon as the slot exists: only until its stream begins is its confirmed LSN the one at
    which it was created. Raises TIMEOUT if an open transaction of the application keeps the slot
    from being finished.
    """

    def begins() -> int | None:
        state = slot.slot_state(connection, config.name)
        return None if state is None else state.confirmed_lsn

    until(lambda: begins() is not None, _SECONDS, f"slot {config.name} was not finished")
    write_private(_file(config), json.dumps({"lsn": begins()}))


def first_lsn(config: Config) -> int | None:
    """Return the LSN at which the slot was created; None if it was not remembered.

    No row of an uninterrupted first snapshot has a later LSN.
    """
    lsn = (read_json(_file(config)) or {}).get("lsn")
    return lsn if isinstance(lsn, int) else None


def _file(config: Config) -> Path:
    return StateDir(config.state_dir).root / "first_slot.json"
