"""Where the slot of the first snapshot begins: the one LSN at which its rows are true.

A connector that is interrupted in its first snapshot begins it again by itself, by the slot that
is there already. Then each table is read at a moment of its own, later than that, and what the
stream brings of it may be in the rows. Nothing of the rows tells so but their LSN.
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
    """Before a connector makes another slot."""
    _file(config).unlink(missing_ok=True)


def remember(connection: Connection, config: Config) -> None:
    """As soon as there is one: before its stream begins it says where it was made, later more.

    Raises TIMEOUT where it is not finished: a transaction of the application is open.
    """

    def begins() -> int | None:
        state = slot.slot_state(connection, config.name)
        return None if state is None else state.confirmed_lsn

    until(lambda: begins() is not None, _SECONDS, f"slot {config.name} was not finished")
    write_private(_file(config), json.dumps({"lsn": begins()}))


def known(config: Config) -> int | None:
    """No row of the first snapshot has a later LSN; None where nobody looked when it was made."""
    found = (read_json(_file(config)) or {}).get("lsn")
    return found if isinstance(found, int) else None


def _file(config: Config) -> Path:
    return StateDir(config.state_dir).root / "first_slot.json"
