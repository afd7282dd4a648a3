"""Define the SQL functions that the event triggers call, and the triggers.

They, and the functions in ``description.py``, ``note.py`` and ``leave_out.py`` that they call, run
inside the application's DDL. Such code qualifies every name with its schema, reads no table of the
application, waits for no other transaction's lock, and turns each of its own failures into a
warning and a note of the failure.
"""

# ruff: noqa: S608 - every part of a statement is a constant of ours
from typing import Final

from cdc.source.notes.description import DESCRIBE
from cdc.source.notes.leave_out import AVRO_NAME, LEAVE_OUT
from cdc.source.notes.note import NOTE, NOTE_FAILURE
from cdc.source.notes.structure_table import CONTROL_LITERAL
from cdc.tables import CONTROL_SCHEMA, STRUCTURE

_CHANGED: Final = f"""\
CREATE OR REPLACE FUNCTION {CONTROL_SCHEMA}.note_changed() RETURNS event_trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
    SET standard_conforming_strings = on
AS $body$
DECLARE
    rewritten CONSTANT text[] :=
        string_to_array(current_setting('{CONTROL_SCHEMA}.rewritten', true), ' ');
    stack text;
    expressed boolean;
    renamed boolean;
    relations oid[];
    relation oid;
    reason int;
    publication text;
BEGIN
    PERFORM set_config('{CONTROL_SCHEMA}.rewritten', '', true);
    -- A statement of the client stands in the query's text, one of a function does not.
    GET DIAGNOSTICS stack = PG_CONTEXT;
    expressed := COALESCE(stack ~ '\\n' OR current_query() !~* '\\malter\\s+table\\M'
                          OR current_query() ~* '\\musing\\M', true);
    renamed := COALESCE(stack ~ '\\n' OR current_query() !~* '\\malter\\s+publication\\M'
                        OR current_query() ~* '\\mrename\\M', true);
    IF TG_TAG = 'ALTER SCHEMA' THEN
        SELECT array_agg(c.oid) INTO relations FROM pg_event_trigger_ddl_commands() d
          JOIN pg_class c ON c.relnamespace = d.objid WHERE d.classid = 'pg_namespace'::regclass;
    ELSE  -- also tables with a type that is made of what has changed
        WITH RECURSIVE changed(oid) AS (
            SELECT d.objid FROM pg_event_trigger_ddl_commands() d
             WHERE d.classid = 'pg_class'::regclass),
        types(oid) AS (
            SELECT c.reltype FROM changed d JOIN pg_class c ON c.oid = d.oid
            UNION
            SELECT d.objid FROM pg_event_trigger_ddl_commands() d
             WHERE d.classid = 'pg_type'::regclass AND TG_TAG LIKE 'ALTER%'
            UNION
            SELECT COALESCE(c.reltype, p.objid)
              FROM types y
              JOIN pg_depend p ON p.refclassid = 'pg_type'::regclass AND p.refobjid = y.oid
              LEFT JOIN pg_class c ON p.classid = 'pg_class'::regclass AND c.oid = p.objid
             WHERE p.classid = 'pg_type'::regclass OR c.reltype <> 0)
        SELECT array_agg(u.oid) INTO relations FROM (
            SELECT d.oid FROM changed d
            UNION
            SELECT p.objid FROM types y
              JOIN pg_depend p ON p.refclassid = 'pg_type'::regclass AND p.refobjid = y.oid
             WHERE p.classid = 'pg_class'::regclass) u;
    END IF;
    FOR relation, reason IN
        WITH RECURSIVE tables(oid) AS (
            SELECT unnest(relations)
            UNION
            SELECT i.inhrelid FROM tables t JOIN pg_inherits i ON i.inhparent = t.oid)
        SELECT t.oid, COALESCE((SELECT bit_or(split_part(r, ':', 2)::int) FROM unnest(rewritten) r
                                 WHERE r ~ ('^' || t.oid || ':[0-9]{{1,3}}$')), 0)
          FROM tables t ORDER BY t.oid
    LOOP
        PERFORM {CONTROL_SCHEMA}.note(relation, TG_TAG, reason, expressed, NULL);
        PERFORM {CONTROL_SCHEMA}.leave_out_unreadable(relation);
    END LOOP;
    IF TG_TAG IN ('ALTER PUBLICATION', 'ALTER TABLE') THEN
        FOR relation, publication IN
            SELECT r.prrelid, p.pubname
              FROM pg_publication p JOIN pg_publication_rel r ON r.prpubid = p.oid
             WHERE p.oid IN (  -- of which some changes are left out from now on, or were till now
                   SELECT d.objid FROM pg_event_trigger_ddl_commands() d
                    WHERE d.classid = 'pg_publication'::regclass)
               AND (renamed OR NOT (p.pubinsert AND p.pubupdate AND p.pubdelete AND p.pubtruncate))
                OR p.pubviaroot  -- or come by the name of the table that this is a part of
               AND (TG_TAG = 'ALTER PUBLICATION' OR EXISTS (
                    SELECT FROM pg_partition_ancestors(r.prrelid) a WHERE a.relid = ANY(relations)))
               AND EXISTS (
                    SELECT FROM pg_partition_ancestors(r.prrelid) a
                     WHERE a.relid <> r.prrelid AND (
                           EXISTS (SELECT FROM pg_publication_rel o
                                    WHERE o.prpubid = p.oid AND o.prrelid = a.relid)
                        OR EXISTS (SELECT FROM pg_publication_namespace o JOIN pg_class c
                                       ON c.relnamespace = o.pnnspid
                                    WHERE o.pnpubid = p.oid AND c.oid = a.relid)))
        LOOP
            PERFORM {CONTROL_SCHEMA}.note(relation, TG_TAG, 0, false, publication);
        END LOOP;
    END IF;
EXCEPTION WHEN OTHERS THEN
    PERFORM {CONTROL_SCHEMA}.note_failure(TG_TAG, SQLSTATE, SQLERRM);
END
$body$"""

_REWRITTEN: Final = f"""\
CREATE OR REPLACE FUNCTION {CONTROL_SCHEMA}.note_rewritten() RETURNS event_trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $body$
BEGIN  -- read at the end of the command
    PERFORM set_config('{CONTROL_SCHEMA}.rewritten', concat_ws(' ',
        NULLIF(current_setting('{CONTROL_SCHEMA}.rewritten', true), ''),
        concat(pg_event_trigger_table_rewrite_oid(), ':',
               pg_event_trigger_table_rewrite_reason())), true);
EXCEPTION WHEN OTHERS THEN
    PERFORM {CONTROL_SCHEMA}.note_failure(TG_TAG, SQLSTATE, SQLERRM);
END
$body$"""

_GONE: Final = f"""\
CREATE OR REPLACE FUNCTION {CONTROL_SCHEMA}.note_gone() RETURNS event_trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
    SET standard_conforming_strings = on
AS $body$
DECLARE
    relation oid;
    publication text;
BEGIN
    INSERT INTO {STRUCTURE} (noted_at, command, rewrite, converted, table_oid,
                             table_schema, table_name)
    SELECT clock_timestamp(), TG_TAG, 0, false, d.objid::bigint, d.schema_name, d.object_name
      FROM pg_event_trigger_dropped_objects() d
     WHERE d.object_type = 'table' AND NOT d.is_temporary AND d.schema_name !~ '^pg_'
       AND d.schema_name NOT IN ('information_schema', {CONTROL_LITERAL});
    FOR relation, publication IN  -- that left a publication, whole or with a part of its rows
        SELECT c.oid, d.address_args[1] FROM pg_event_trigger_dropped_objects() d
          JOIN pg_namespace n ON n.nspname = d.address_names[1]
          JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = d.address_names[2]
         WHERE d.object_type = 'publication relation'
    LOOP
        PERFORM {CONTROL_SCHEMA}.note(relation, TG_TAG, 0, false, publication);
    END LOOP;
    IF TG_TAG ~ '^ALTER' THEN
        RETURN;  -- noted at the end of the command
    END IF;
    FOR relation IN  -- that lost a column, a key or its replica identity by the way
        SELECT c.oid FROM pg_event_trigger_dropped_objects() d
          JOIN pg_class c ON c.oid = d.objid
         WHERE d.object_type = 'table column'
        UNION
        SELECT c.oid FROM pg_event_trigger_dropped_objects() d
          JOIN pg_namespace n ON n.nspname = d.address_names[1]
          JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = d.address_names[2]
         WHERE d.object_type = 'table constraint'
        UNION
        SELECT c.oid FROM pg_class c
         WHERE c.relreplident = 'i' AND EXISTS (
               SELECT FROM pg_event_trigger_dropped_objects() d WHERE d.object_type = 'index')
           AND NOT EXISTS (SELECT FROM pg_index x WHERE x.indrelid = c.oid AND x.indisreplident)
    LOOP
        PERFORM {CONTROL_SCHEMA}.note(relation, TG_TAG, 0, false, NULL);
        PERFORM {CONTROL_SCHEMA}.leave_out_unreadable(relation);
    END LOOP;
EXCEPTION WHEN OTHERS THEN
    PERFORM {CONTROL_SCHEMA}.note_failure(TG_TAG, SQLSTATE, SQLERRM);
END
$body$"""

SUPERSEDED: Final = (
    f"DROP FUNCTION IF EXISTS {CONTROL_SCHEMA}.note(oid, text, int, boolean)",
    f"DROP FUNCTION IF EXISTS {CONTROL_SCHEMA}.leave_out_clashing(oid)",
)
"""Statements that drop functions of earlier versions which ``CREATE OR REPLACE`` leaves behind."""
FUNCTIONS: Final = (
    DESCRIBE,
    NOTE,
    NOTE_FAILURE,
    AVRO_NAME,
    LEAVE_OUT,
    _CHANGED,
    _REWRITTEN,
    _GONE,
)

TRIGGERS: Final = {
    "wal2lake_changed": (
        "ddl_command_end",
        "note_changed",
        (
            "ALTER TABLE",
            "ALTER INDEX",  # Postgres takes it for a table, too
            "CREATE TABLE",
            "CREATE TABLE AS",
            "SELECT INTO",
            "CREATE SCHEMA",
            "ALTER SCHEMA",
            "ALTER TYPE",
            "ALTER DOMAIN",
            "ALTER PUBLICATION",
        ),
    ),
    "wal2lake_rewritten": ("table_rewrite", "note_rewritten", ()),
    "wal2lake_gone": ("sql_drop", "note_gone", ()),
}
"""Each trigger's event, function and command tags; without tags it fires for all commands."""
