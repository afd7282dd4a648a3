"""Event triggers in the source that note every change of a table's structure.

A note is a row of ``wal2lake.structure``, written in the transaction of the DDL, so it stands in
the WAL between the rows of before and those of after: ``ALTER TABLE`` lets nobody else write the
table until it commits.
"""

import hashlib
import sys
from collections.abc import Iterator
from typing import Final

from cdc.events.values.sql_text import postgres_string
from cdc.source.notes import unnoted
from cdc.source.notes.sql import COLUMNS, DESCRIPTION, FUNCTIONS, SPELLING, SUPERSEDED, TRIGGERS
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
    """Make or renew functions and triggers, where the role may; whether they are there now.

    Only a superuser may make an event trigger. Idempotent.
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
    """Everything that ``install`` runs, in order, each may be run again."""
    yield from SUPERSEDED
    yield from FUNCTIONS
    yield unnoted.mark(TRIGGERS)
    yield f"REVOKE ALL ON ALL FUNCTIONS IN SCHEMA {CONTROL_SCHEMA} FROM PUBLIC"
    for name, (event, function, tags) in TRIGGERS.items():
        yield f"DROP EVENT TRIGGER IF EXISTS {name}"
        said = ", ".join(map(postgres_string, tags))
        only = f"\n    WHEN TAG IN ({said})" if said else ""
        yield (
            f"CREATE EVENT TRIGGER {name} ON {event}{only}"
            f"\n    EXECUTE FUNCTION {CONTROL_SCHEMA}.{function}()"
        )
        # Also for a session that applies the changes of another server.
        yield f"ALTER EVENT TRIGGER {name} ENABLE ALWAYS"
        yield f"COMMENT ON EVENT TRIGGER {name} IS {postgres_string(_fingerprint())}"


def script() -> str:
    """connectors/structure.sql."""
    makes = (
        f"CREATE SCHEMA IF NOT EXISTS {CONTROL_SCHEMA}",
        f"CREATE TABLE IF NOT EXISTS {STRUCTURE} {COLUMNS}",
        *statements(),
    )
    return _HEAD + "".join(f"\n{statement};\n" for statement in ("BEGIN", *makes, "COMMIT"))


def findings(connection: Connection) -> list[Finding]:
    """Whether changes of a table's structure are followed as they happen."""
    if wrong := unnoted.spoiled(connection, TRIGGERS):
        said = f"may not be noted: {wrong}"
        return [Finding.warning(_SUBJECT, said, remedy=unnoted.REMEDY)]
    with translated("looking for the event triggers"):
        if is_installed(connection):
            return [Finding.ok(_SUBJECT, "are noted by event triggers")]
        if _is_superuser(connection):
            return [Finding.ok(_SUBJECT, "will be noted by event triggers, which up installs")]
    return [
        Finding.warning(
            _SUBJECT,
            "are not noted, or by event triggers of another version: a table whose columns change "
            "stops where its catalogue leaves a doubt; ALTER TYPE ... USING of equal types, two "
            "columns that swap their names, renamed enum values, and a table that is renamed, "
            "written to and renamed back are not noticed at all",
            remedy="let a superuser run connectors/structure.sql",
        )
    ]


def structure_of(connection: Connection, oid: int) -> str | None:
    """The table as the triggers would note it now; None when there is none."""
    # Rolled back, so that a transaction of the caller's keeps its own spelling.
    with translated("reading the catalogue"), connection.transaction(force_rollback=True):
        for name, value in SPELLING.items():
            connection.execute("SELECT set_config(%s, %s, true)", (name, value))
        row = connection.execute(DESCRIPTION.encode(), (oid,)).fetchone()
    return None if row is None else str(row[0])


def is_installed(connection: Connection) -> bool:
    """Whether every change of a structure is noted, by triggers of this version."""
    rows = connection.execute(_INSTALLED, (list(TRIGGERS),)).fetchall()
    wanted = {(name, _fingerprint()) for name in TRIGGERS}
    return set(rows) == wanted and not unnoted.spoiled(connection, TRIGGERS)


def _is_superuser(connection: Connection) -> bool:
    row = connection.execute(_SUPERUSER).fetchone()
    return row is not None and bool(row[0])


def _fingerprint() -> str:
    """Of the version of all of it; another one is replaced."""
    said = repr((FUNCTIONS, TRIGGERS)).encode()
    return f"wal2lake {hashlib.sha256(said).hexdigest()[:16]}"


if __name__ == "__main__":
    sys.stdout.write(script())
