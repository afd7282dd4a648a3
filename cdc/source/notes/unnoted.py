"""Detect that changes of structure may have gone unrecorded, as somebody altered the triggers.

What happened meanwhile is in no note. That it may have happened can be seen: a trigger is created,
enabled and commented on in one transaction, and a later ``ALTER EVENT TRIGGER`` leaves a newer row.
The tables that may have changed can be seen too: their rows in the catalogue are newer than their
last note.

A superuser's ``SET event_triggers = off`` leaves no trace.
"""

# ruff: noqa: S608 - every part of a statement is a constant of ours
from collections.abc import Iterable
from typing import Final

from cdc.events.values.sql_text import postgres_string, standard_string
from cdc.source.notes.structure_table import BASELINE, UNNOTED
from cdc.source.server.connection import Connection, translated
from cdc.tables import CONTROL_SCHEMA, HEARTBEAT, STRUCTURE

REMEDY: Final = (
    "run wal2lake down and wal2lake up, or have a superuser run connectors/structure.sql: either "
    "recreates the triggers, and tables that may have changed in the meantime stop"
)
_SPOILED: Final = """
  FROM unnest({names}) AS w(name)
  LEFT JOIN pg_event_trigger e ON e.evtname = w.name
  LEFT JOIN pg_description d ON d.objoid = e.oid AND d.classoid = 'pg_event_trigger'::regclass
 WHERE e.evtenabled IS DISTINCT FROM 'A' OR age(e.xmin) < age(d.xmin)"""
_WHICH: Final = f"""
SELECT w.name, CASE WHEN e.oid IS NULL THEN 'is gone' WHEN e.evtenabled = 'D' THEN 'is disabled'
                    ELSE 'was altered after it was made' END
{_SPOILED.format(names="%s::text[]")} ORDER BY w.name"""
_OURS: Final = f"""
SELECT count(*) FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
 WHERE p.proname = 'note_changed' AND n.nspname = {postgres_string(CONTROL_SCHEMA)}"""
_NEWEST: Final = 2**31 - 1
"""The age of a table without notes."""
_MARK: Final = """DO $body$
BEGIN
    IF NOT EXISTS (SELECT FROM {structure} WHERE command <> {baseline})
       OR NOT EXISTS (SELECT {spoiled}) THEN
        RETURN;
    END IF;
    INSERT INTO {structure} (noted_at, command, rewrite, converted, table_oid,
                             table_schema, table_name, structure)
    SELECT clock_timestamp(), {unnoted}, 0, false, c.oid::bigint, n.nspname, c.relname,
           f.described::text
      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      CROSS JOIN LATERAL (SELECT {control}.describe(c.oid)::jsonb AS described) f
     WHERE n.nspname <> {control_name} AND EXISTS (  -- of a publication of ours
           SELECT FROM pg_publication_rel r JOIN pg_publication_rel o ON o.prpubid = r.prpubid
            WHERE r.prrelid = c.oid AND o.prrelid = to_regclass({heartbeat}))
       AND (LEAST(age(c.xmin),
                  (SELECT min(age(a.xmin)) FROM pg_attribute a WHERE a.attrelid = c.oid),
                  (SELECT min(age(r.xmin)) FROM pg_publication_rel r WHERE r.prrelid = c.oid))
            < COALESCE((SELECT min(age(s.xmin)) FROM {structure} s WHERE s.table_oid = c.oid),
                       {newest})
            OR f.described <> (SELECT s.structure::jsonb - 'unpublished_from' FROM {structure} s
                                WHERE s.table_oid = c.oid ORDER BY s.id DESC LIMIT 1));
END
$body$"""


def trigger_damage(connection: Connection, names: Iterable[str]) -> str:
    """Describe what is wrong with these triggers; empty if they are intact or were never created.

    Raises like ``translated``.
    """
    with translated("reading the event triggers"):
        installed = connection.execute(_OURS.encode()).fetchone()
        rows = connection.execute(_WHICH.encode(), (list(names),)).fetchall()
    if not installed or not installed[0]:
        return ""
    return ", ".join(f"event trigger {name} {what}" for name, what in rows)


def marking_statement(names: Iterable[str]) -> str:
    """Return the statement that notes every table whose changes may have gone unrecorded.

    It runs before the triggers of these names are recreated. At the first installation it does
    nothing, because there was nothing to record before.
    """
    listed = ", ".join(map(postgres_string, names))
    return _MARK.format(
        structure=STRUCTURE,
        baseline=postgres_string(BASELINE),
        unnoted=postgres_string(UNNOTED),
        spoiled=_SPOILED.format(names=f"ARRAY[{listed}]").strip(),
        control=CONTROL_SCHEMA,
        control_name=postgres_string(CONTROL_SCHEMA),
        heartbeat=standard_string(str(HEARTBEAT)),
        newest=_NEWEST,
    )
