"""Whether the connector is at its source, as Postgres itself sees it."""

from typing import Final

from cdc.errors import CdcError
from cdc.source.postgres import connect, translated

_CONNECT_SECONDS: Final = 3
_ANSWER_SECONDS: Final = 10.0
_PRESENT: Final = """
SELECT EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = %s AND active)
    OR EXISTS (SELECT FROM pg_stat_activity
                WHERE datname = current_database() AND application_name LIKE 'Debezium %%')
"""


def is_at_source(url: str, slot: str) -> bool | None:
    """True where the slot is read, or a connector has a session at the database of ``url``.

    It has one while it takes its first snapshot, when nobody reads the slot. A second connector at
    the same database is not told apart from it. None where the source does not answer.
    """
    try:
        with (
            connect(
                url, connect_timeout=_CONNECT_SECONDS, answer_seconds=_ANSWER_SECONDS
            ) as connection,
            translated("looking for the connector"),
        ):
            row = connection.execute(_PRESENT, (slot,)).fetchone()
    except CdcError:
        return None
    return bool(row and row[0])
