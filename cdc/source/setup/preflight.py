"""Check the source's server, role and slot before anything is created in it."""

from typing import Any, Final

from cdc.config import Config
from cdc.source.catalog.catalog import SourceTable
from cdc.source.server.connection import Connection, translated
from cdc.source.server.finding import Finding
from cdc.source.server.slot import slot_state
from cdc.source.setup.prepare import publication_tables
from cdc.tables import HEARTBEAT, STRUCTURE, TableId

FIRST_SOUND_MINOR: Final = {14: 18, 15: 13, 16: 9, 17: 5}
"""First minor version, by major, in which ALTER PUBLICATION ... ADD TABLE cannot lose changes."""
OLDEST_MAJOR: Final = 14  # supported by the connector

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
    """Return findings about the server: version, wal_level, limits. Raises like ``translated``."""
    with translated("reading the server's settings"):
        row = connection.execute(_SERVER).fetchone()
    assert row is not None  # noqa: S101 - we are connected to a database
    version, wal_level, standby, encoding, keep, slots, senders = row
    findings = [_version(version)]
    if standby:
        findings.append(
            Finding.error("server", "is a standby", remedy="point source.url at the primary")
        )
    findings.append(_wal_level(wal_level))
    if encoding != "UTF8":
        findings.append(Finding.warning("database", f"uses encoding {encoding}, not UTF8"))
    if keep < 0:
        findings.append(
            Finding.warning(
                "max_slot_wal_keep_size",
                "is -1: while the pipeline is down, WAL can fill the source's disk",
                remedy="ALTER SYSTEM SET max_slot_wal_keep_size = '20GB', or what the disk allows",
            )
        )
    for name, left in (("max_replication_slots", slots), ("max_wal_senders", senders)):
        if left < 1:
            findings.append(Finding.warning(name, "all are in use", remedy=f"raise {name}"))
    return findings


def role_findings(
    connection: Connection, config: Config, tables: tuple[SourceTable, ...]
) -> list[Finding]:
    """Return findings about the role: replication, and the rights to create what is missing.

    Raises like ``translated``.
    """
    with translated("reading the role's attributes"):
        row = connection.execute(_ROLE).fetchone()
    assert row is not None  # noqa: S101 - we are connected as a role
    superuser, replication, may_create, name = row
    findings = []
    if not (superuser or replication):
        findings.append(
            Finding.error(
                f"role {name}", "lacks REPLICATION", remedy=f"ALTER ROLE {name} REPLICATION"
            )
        )
    if not superuser:
        findings += _rights(connection, config, tables, may_create=may_create)
    return findings or [Finding.ok(f"role {name}", "has all required privileges")]


def slot_findings(connection: Connection, name: str) -> list[Finding]:
    """Return whether the slot exists, and how much WAL it retains. Raises like ``translated``."""
    state = slot_state(connection, name)
    if state is None:
        return [Finding.ok(f"slot {name}", "does not exist yet")]
    reader = f"read by pid {state.active_pid}" if state.active_pid else "not in use"
    message = f"retains {_size(state.retained_bytes)} of WAL ({state.wal_status}), {reader}"
    if state.wal_status in {"unreserved", "lost"}:
        return [
            Finding.error(f"slot {name}", message, remedy="start the pipeline, or drop the slot")
        ]
    return [Finding.ok(f"slot {name}", message)]


def _version(number: int) -> Finding:
    major, minor = divmod(number, 10_000)
    subject = f"Postgres {major}.{minor}"
    if major < OLDEST_MAJOR:
        return Finding.error(
            subject, f"is older than {OLDEST_MAJOR}", remedy=f"upgrade to {OLDEST_MAJOR} or later"
        )
    sound = FIRST_SOUND_MINOR.get(major, 0)
    if minor < sound:
        return Finding.warning(
            subject,
            "logical decoding can lose changes while a table is added to a publication",
            remedy=f"upgrade to {major}.{sound} or later",
        )
    return Finding.ok(subject, "is recent enough")


def _wal_level(level: str) -> Finding:
    if level == "logical":
        return Finding.ok("wal_level", "is logical")
    return Finding.error(
        "wal_level",
        f"is {level}, but must be logical",
        remedy="ALTER SYSTEM SET wal_level = logical, then restart Postgres",
    )


def _rights(
    connection: Connection, config: Config, tables: tuple[SourceTable, ...], *, may_create: bool
) -> list[Finding]:
    published_tables = publication_tables(connection, config.name)
    missing = [t for t in tables if t.table not in (published_tables or set())]
    findings = []
    if published_tables is None and not may_create:
        findings.append(_needs_dba(f"publication {config.name}", "does not exist"))
    findings += [
        _needs_dba(str(TableId(schema, table)), "is not published, and the role does not own it")
        for schema, table in _rows(connection, _NOT_OWNED, ([t.oid for t in missing],))
    ]
    for control in (HEARTBEAT, STRUCTURE):
        rows = _rows(connection, _CONTROL, (control.schema, control.name))
        if not rows and not may_create:
            findings.append(_needs_dba(str(control), "does not exist"))
        elif rows and not rows[0][0]:
            findings.append(_needs_dba(str(control), "the role may not read it"))
        elif rows and not rows[0][1]:
            findings.append(_needs_dba(str(control), "the role may not write to it"))
    return findings


def _needs_dba(subject: str, message: str) -> Finding:
    return Finding.error(subject, message, remedy="have a DBA run connectors/source.sql")


def _rows(connection: Connection, statement: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    with translated("reading the role's privileges"):
        return connection.execute(statement.encode(), values).fetchall()


def _size(size: int | None) -> str:
    return "an unknown amount" if size is None else f"{max(size, 0) / 1024**2:,.0f} MiB"
