"""Define the SQL functions that write one note, or the note of a failure."""

# ruff: noqa: S608 - every part of a statement is a constant of ours
from typing import Final

from cdc.events.values.sql_text import postgres_string
from cdc.source.notes.structure_table import BASELINE, CONTROL_LITERAL
from cdc.tables import CONTROL_SCHEMA, STRUCTURE

_BASELINE: Final = postgres_string(BASELINE)

NOTE: Final = f"""\
CREATE OR REPLACE FUNCTION {CONTROL_SCHEMA}.note(
    relation oid, command text, reason int, expressed boolean, publication text) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    SET standard_conforming_strings = on
AS $body$
#variable_conflict use_variable
DECLARE
    made bigint;
    named record;
    described text;
BEGIN
    SELECT n.nspname, c.relname INTO named
      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE c.oid = relation AND c.relkind IN ('r', 'p') AND c.relpersistence <> 't'
       AND n.nspname !~ '^pg_' AND n.nspname NOT IN ('information_schema', {CONTROL_LITERAL});
    IF NOT FOUND THEN
        RETURN;
    END IF;
    BEGIN
        described := {CONTROL_SCHEMA}.describe(relation);
        IF publication IS NOT NULL THEN
            described := (described::jsonb
                          || jsonb_build_object('unpublished_from', publication))::text;
        END IF;
    EXCEPTION WHEN OTHERS THEN
        described := json_build_object('oid', relation::bigint, 'failed', SQLSTATE);
        RAISE WARNING 'wal2lake: the structure of % is not known: %', relation::regclass, SQLERRM;
    END;
    INSERT INTO {STRUCTURE} AS s (noted_at, command, rewrite, converted, table_oid,
                                  table_schema, table_name, structure)
    VALUES (clock_timestamp(), command, reason, reason & 4 <> 0 AND expressed, relation::bigint,
            named.nspname, named.relname, described)
    RETURNING s.id INTO made;
    IF made % 256 = 0 THEN  -- what is in the WAL is not needed here
        DELETE FROM {STRUCTURE} o WHERE o.id IN (
            SELECT i.id FROM {STRUCTURE} i WHERE i.id < made - 4096 AND i.command <> {_BASELINE}
             ORDER BY i.id LIMIT 1024 FOR UPDATE SKIP LOCKED);
    END IF;
END
$body$"""

NOTE_FAILURE: Final = f"""\
CREATE OR REPLACE FUNCTION {CONTROL_SCHEMA}.note_failure(command text, state text, message text)
    RETURNS void LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $body$
BEGIN
    RAISE WARNING 'wal2lake: % is not noted: %', command, message;
    INSERT INTO {STRUCTURE} (noted_at, command, rewrite, converted, table_oid, structure)
    VALUES (clock_timestamp(), command, 0, false, 0, json_build_object('oid', 0, 'failed', state));
EXCEPTION WHEN OTHERS THEN
    RAISE WARNING 'wal2lake: nor is that: %', SQLERRM;
END
$body$"""
