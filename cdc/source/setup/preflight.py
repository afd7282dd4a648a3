"""What of the source's server and role must be right before anything is made in it."""

from typing import Any, Final

from cdc.config import Config
from cdc.source.catalog.catalog import SourceTable
from cdc.source.server.connection import Connection, translated
from cdc.source.server.finding import Finding
from cdc.source.server.slot import slot_state
from cdc.source.setup.prepare import published
from cdc.tables import HEARTBEAT, SIGNAL, STRUCTURE, TableId

FIRST_SOUND_MINOR: Final = {14: 18, 15: 13, 16: 9, 17: 5}
"""Before these, logical decoding could lose changes beside ALTER PUBLICATION ... ADD TABLE."""
OLDEST_MAJOR: Final = 14  # that the connector supports

_SERVER: Final = """
SELECT current_setting('server_version_num')::int, current_setting('wal_level'),
       pg_is_in_recovery(), pg_encoding_to_char(encoding),
       pg_size_bytes(current_setting('max_slot_wal_keep_size')),
       current_setting('max_replication_slots')::int - (SELECT count(*) FROM pg_replication_slots),
       current_setting('max_wal_senders')::int - (SELECT count(*) FROM pg_stat_replication)
  FROM pg_database WHERE datname = current_database()
"""
_ROLE: Final = """
SELECT rolsuper, rolreplication OR EXISTS (
           SELECT FROM pg_roles m WHERE m.rolname IN ('rds_replication', 'cloudsqlreplica')
              AND pg_has_role(r.oid, m.oid, 'MEMBER')),
       has_database_privilege(current_database(), 'CREATE'), rolname
  FROM pg_roles r WHERE rolname = current_user
"""
_NOT_OWNED: Final = """
SELECT n.nspname, c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.oid = ANY(%s) AND NOT pg_has_role(c.relowner, 'USAGE') ORDER BY 1, 2
"""
_CONTROL: Final = """
SELECT has_table_privilege(c.oid, 'SELECT'),
       has_table_privilege(c.oid, 'INSERT') AND has_table_privilege(c.oid, 'UPDATE') FROM pg_class c
  JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relname = %s
"""


def server_findings(connection: Connection) -> list[Finding]:
    """Of the server: version, wal_level, limits."""
    with translated("looking at the server's settings"):
        row = connection.execute(_SERVER).fetchone()
    assert row is not None  # noqa: S101 - there is a database we are connected to
    version, wal_level, standby, encoding, keep, slots, senders = row
    found = [_version(version)]
    if standby:
        found.append(
            Finding.error(
                "server", "is a standby: name the primary", remedy="source.url of the primary"
            )
        )
    found.append(_wal_level(wal_level))
    if encoding != "UTF8":
        found.append(Finding.warning("database", f"is encoded in {encoding}, not UTF8"))
    if keep < 0:
        found.append(
            Finding.warning(
                "max_slot_wal_keep_size",
                "is -1: while the pipeline is down, WAL fills the source's disk",
                remedy="ALTER SYSTEM SET max_slot_wal_keep_size = '20GB', or what the disk allows",
            )
        )
    for name, left in (("max_replication_slots", slots), ("max_wal_senders", senders)):
        if left < 1:
            found.append(Finding.warning(name, "all are in use", remedy=f"raise {name}"))
    return found


def role_findings(
    connection: Connection, config: Config, tables: tuple[SourceTable, ...]
) -> list[Finding]:
    """Of the role: replication, and the right to make what is not there yet."""
    with translated("looking at the role"):
        row = connection.execute(_ROLE).fetchone()
    assert row is not None  # noqa: S101 - there is a role we are connected as
    superuser, replication, may_create, name = row
    found = []
    if not (superuser or replication):
        found.append(
            Finding.error(
                f"role {name}", "has no REPLICATION", remedy=f"ALTER ROLE {name} REPLICATION"
            )
        )
    if not superuser:
        found += _rights(connection, config, tables, may_create=may_create)
    return found or [Finding.ok(f"role {name}", "has the rights it needs")]


def slot_findings(connection: Connection, name: str) -> list[Finding]:
    state = slot_state(connection, name)
    if state is None:
        return [Finding.ok(f"slot {name}", "does not exist yet")]
    in_use = f", read by pid {state.active_pid}" if state.active_pid else ", read by nobody"
    message = f"retains {_size(state.retained_bytes)} of WAL ({state.wal_status}){in_use}"
    if state.wal_status in {"unreserved", "lost"}:
        return [Finding.error(f"slot {name}", message, remedy="start the pipeline, or drop it")]
    return [Finding.ok(f"slot {name}", message)]


def _version(number: int) -> Finding:
    major, minor = divmod(number, 10_000)
    subject = f"Postgres {major}.{minor}"
    if major < OLDEST_MAJOR:
        return Finding.error(subject, f"is older than {OLDEST_MAJOR}", remedy="upgrade it")
    sound = FIRST_SOUND_MINOR.get(major, 0)
    if minor < sound:
        return Finding.warning(
            subject,
            "logical decoding can lose changes while tables are added to a publication",
            remedy=f"upgrade to {major}.{sound} or later",
        )
    return Finding.ok(subject, "is recent enough")


def _wal_level(level: str) -> Finding:
    if level == "logical":
        return Finding.ok("wal_level", "is logical")
    return Finding.error(
        "wal_level",
        f"is {level} and must be logical",
        remedy="ALTER SYSTEM SET wal_level = logical, then restart Postgres",
    )


def _rights(
    connection: Connection, config: Config, tables: tuple[SourceTable, ...], *, may_create: bool
) -> list[Finding]:
    have = published(connection, config.name)
    missing = [t for t in tables if t.table not in (have or set())]
    found = []
    if have is None and not may_create:
        found.append(_needs_dba(f"publication {config.name}", "does not exist"))
    found += [
        _needs_dba(str(TableId(schema, table)), "is not published and not the role's own")
        for schema, table in _rows(connection, _NOT_OWNED, ([t.oid for t in missing],))
    ]
    for control in (HEARTBEAT, SIGNAL, STRUCTURE):
        rows = _rows(connection, _CONTROL, (control.schema, control.name))
        if not rows and not may_create:
            found.append(_needs_dba(str(control), "does not exist"))
        elif rows and not rows[0][0]:
            found.append(_needs_dba(str(control), "may not be read by the role"))
        elif control != SIGNAL and rows and not rows[0][1]:
            found.append(_needs_dba(str(control), "may not be written by the role"))
    return found


def _needs_dba(subject: str, message: str) -> Finding:
    return Finding.error(subject, message, remedy="let a DBA run connectors/source.sql")


def _rows(connection: Connection, statement: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    with translated("looking at the role's rights"):
        return connection.execute(statement.encode(), values).fetchall()


def _size(size: int | None) -> str:
    return "an unknown amount" if size is None else f"{max(size, 0) / 1024**2:,.0f} MiB"
