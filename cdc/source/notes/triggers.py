"""Install the event triggers that record every change of a table's structure.

A note is a row of ``wal2lake.structure``, written in the transaction of the DDL. In the WAL it lies
between the rows with the old structure and those with the new one, because ``ALTER TABLE`` blocks
all other writers of the table until it commits.
"""

import hashlib
import sys
from collections.abc import Iterator
from typing import Final

from cdc.events.values.sql_text import postgres_string
from cdc.source.notes import unnoted
from cdc.source.notes.description import DESCRIPTION, SPELLING
from cdc.source.notes.structure_table import COLUMNS
from cdc.source.notes.trigger_functions import FUNCTIONS, SUPERSEDED, TRIGGERS
from cdc.source.server.connection import Connection, translated
from cdc.source.server.finding import Finding
from cdc.tables import CONTROL_SCHEMA, STRUCTURE

_INSTALLED: Final = """
SELECT e.evtname, obj_description(e.oid, 'pg_event_trigger')
  FROM pg_event_trigger e WHERE e.evtname = ANY(%s)
"""
_SUPERUSER: Final = "SELECT rolsuper FROM pg_roles WHERE rolname = current_user"
_SUBJECT: Final = "schema changes"
_HEAD: Final = """\
-- Notes changes of the structure of tables in wal2lake.structure, for a superuser to run once, and
-- again after an upgrade: psql -d <database> -f structure.sql. Where wal2lake's own role is
-- a superuser, `wal2lake up` does it by itself. To remove it, see docs/operations.md.
-- Made by `python -m cdc.source.notes.triggers`; a test compares.
"""


def install(connection: Connection) -> bool:
    """Create or replace functions and triggers; return whether this version is installed now.

    Returns False if the role is not a superuser, as only a superuser may create event triggers.
    Idempotent. Raises like ``translated``.
    """
    with translated("installing the event triggers"):
        if is_installed(connection):
            return True
        if not _is_superuser(connection):
            return False
        with connection.transaction():
            for statement in statements():
                connection.execute(statement.encode())
    return True


def statements() -> Iterator[str]:
    """Yield the statements of ``install`` in order; each can be run again."""
    yield from SUPERSEDED
    yield from FUNCTIONS
    yield unnoted.marking_statement(TRIGGERS)
    yield f"REVOKE ALL ON ALL FUNCTIONS IN SCHEMA {CONTROL_SCHEMA} FROM PUBLIC"
    for name, (event, function, tags) in TRIGGERS.items():
        yield f"DROP EVENT TRIGGER IF EXISTS {name}"
        listed = ", ".join(map(postgres_string, tags))
        only = f"\n    WHEN TAG IN ({listed})" if listed else ""
        yield (
            f"CREATE EVENT TRIGGER {name} ON {event}{only}"
            f"\n    EXECUTE FUNCTION {CONTROL_SCHEMA}.{function}()"
        )
        # Fire also in a session that applies changes of another server.
        yield f"ALTER EVENT TRIGGER {name} ENABLE ALWAYS"
        yield f"COMMENT ON EVENT TRIGGER {name} IS {postgres_string(_fingerprint())}"


def script() -> str:
    """Return the text of connectors/structure.sql."""
    makes = (
        f"CREATE SCHEMA IF NOT EXISTS {CONTROL_SCHEMA}",
        f"CREATE TABLE IF NOT EXISTS {STRUCTURE} {COLUMNS}",
        *statements(),
    )
    return _HEAD + "".join(f"\n{statement};\n" for statement in ("BEGIN", *makes, "COMMIT"))


def findings(connection: Connection) -> list[Finding]:
    """Return a finding on whether changes of tables' structures are recorded as they happen.

    Raises like ``translated``.
    """
    if wrong := unnoted.trigger_damage(connection, TRIGGERS):
        message = f"may go unrecorded: {wrong}"
        return [Finding.warning(_SUBJECT, message, remedy=unnoted.REMEDY)]
    with translated("looking for the event triggers"):
        if is_installed(connection):
            return [Finding.ok(_SUBJECT, "are recorded by event triggers")]
        if _is_superuser(connection):
            return [
                Finding.ok(
                    _SUBJECT, "will be recorded by event triggers, which wal2lake up installs"
                )
            ]
    return [
        Finding.warning(
            _SUBJECT,
            "are not recorded, or by event triggers of another version: a table whose columns "
            "change stops if the catalogue does not show how; ALTER TYPE ... USING between equal "
            "types, two columns that swap names, renamed enum values, and a table that is "
            "renamed, written to and renamed back go unnoticed",
            remedy="have a superuser run connectors/structure.sql",
        )
    ]


def structure_of(connection: Connection, oid: int) -> str | None:
    """Return the table's description as the triggers would note it; None if there is no table.

    Raises like ``translated``.
    """
    # Rolled back, so that a surrounding transaction keeps its own settings.
    with translated("reading the catalogue"), connection.transaction(force_rollback=True):
        for name, value in SPELLING.items():
            connection.execute("SELECT set_config(%s, %s, true)", (name, value))
        row = connection.execute(DESCRIPTION.encode(), (oid,)).fetchone()
    return None if row is None else str(row[0])


def is_installed(connection: Connection) -> bool:
    """Return whether triggers of this version record every change of a structure."""
    rows = connection.execute(_INSTALLED, (list(TRIGGERS),)).fetchall()
    wanted = {(name, _fingerprint()) for name in TRIGGERS}
    return set(rows) == wanted and not unnoted.trigger_damage(connection, TRIGGERS)


def _is_superuser(connection: Connection) -> bool:
    row = connection.execute(_SUPERUSER).fetchone()
    return row is not None and bool(row[0])


def _fingerprint() -> str:
    """Return a digest of functions and triggers; triggers with another one are replaced."""
    definition = repr((FUNCTIONS, TRIGGERS)).encode()
    return f"wal2lake {hashlib.sha256(definition).hexdigest()[:16]}"


if __name__ == "__main__":
    sys.stdout.write(script())
