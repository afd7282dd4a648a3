"""The SQL that records changes of a table's structure in the source, and describes a table.

Code that runs inside the application's DDL qualifies every name with its schema, reads no table of
the application, waits for no other transaction's lock, and turns each of its own failures into a
warning and a note of the failure.
"""

# ruff: noqa: S608 - every part of a statement is a constant of ours
from typing import Final

from cdc.events.values.pg_types import HARMLESS_IN_ARRAYS
from cdc.events.values.sql_text import postgres_string, standard_string
from cdc.source.catalog.catalog import ATTRIBUTES, DECLARED
from cdc.source.server.printing import PRINTING
from cdc.tables import CONTROL_SCHEMA, HEARTBEAT, STRUCTURE

COLUMNS: Final = """(
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    noted_at timestamptz NOT NULL,
    command text NOT NULL,       -- the command's tag
    rewrite int NOT NULL,        -- pg_event_trigger_table_rewrite_reason(); 0: the rows stayed
    converted boolean NOT NULL,  -- whether USING may have made the values of a rewrite
    table_oid bigint NOT NULL,
    table_schema text,
    table_name text,
    structure text               -- JSON; null when the table is gone
)"""

BASELINE: Final = "BASELINE"
"""The command of a baseline note, which no DDL caused: cdc/source/notes/baseline.py."""

UNNOTED: Final = "UNNOTED"
"""The command of a note before which others may be missing: cdc/source/notes/unnoted.py."""

SPELLING: Final = {"search_path": "pg_catalog, pg_temp", **PRINTING}
"""Settings that give each value one spelling, whoever alters the table."""

_KEY: Final = """COALESCE((
        SELECT json_agg(a.attname ORDER BY k.place)
          FROM pg_index x, unnest(x.indkey) WITH ORDINALITY k(number, place)
          JOIN pg_attribute a ON a.attnum = k.number
         WHERE x.indrelid = c.oid AND a.attrelid = c.oid AND k.place <= x.indnkeyatts
           AND {kind}), '[]')"""
_CONTROL: Final = postgres_string(CONTROL_SCHEMA)
_BASELINE: Final = postgres_string(BASELINE)
_HARMLESS: Final = standard_string(" ".join(sorted(HARMLESS_IN_ARRAYS)))
_DECLARED: Final = ",\n            ".join(
    f"{postgres_string(name)}, {text}" for name, text in DECLARED.items()
)
_INSIDE: Final = """
      WITH RECURSIVE inside(oid) AS (  -- a type of the server's own is made of none of the user's
          SELECT a.atttypid WHERE a.atttypid >= 16384
          UNION
          SELECT o.oid FROM inside d JOIN pg_type p ON p.oid = d.oid CROSS JOIN LATERAL (
              VALUES (p.typbasetype), (p.typelem)
              UNION ALL SELECT r.rngsubtype FROM pg_range r
               WHERE p.oid IN (r.rngtypid, r.rngmultitypid)
              UNION ALL SELECT s.atttypid FROM pg_attribute s
               WHERE s.attrelid = p.typrelid AND s.attnum > 0 AND NOT s.attisdropped) o(oid)
           WHERE o.oid <> 0)
      SELECT (SELECT json_object_agg(l.oid, l.enumlabel ORDER BY l.enumtypid, l.enumsortorder)
                FROM inside d JOIN pg_enum l ON l.enumtypid = d.oid),
             (SELECT string_agg(concat_ws(':', s.attrelid, s.attnum, s.atttypid, s.atttypmod), ' '
                                ORDER BY s.attrelid, s.attnum)
                FROM inside d JOIN pg_type p ON p.oid = d.oid
                JOIN pg_attribute s ON s.attrelid = p.typrelid AND s.attnum > 0
                     AND NOT s.attisdropped)"""
"""For a column: the labels of all enums and the parts of all composite types in its type."""
_NAMESAKE: Final = """
                SELECT concat('pg_catalog.', o.typname) FROM pg_type y
                  JOIN pg_type o ON o.typname = y.typname AND o.oid <> y.oid
                       AND o.typnamespace = 'pg_catalog'::regnamespace
                 WHERE y.oid = ANY (ARRAY[t.oid, CASE WHEN t.typcategory = 'A' THEN t.typelem END])
                 ORDER BY y.oid = t.oid LIMIT 1"""
"""For a column: the built-in type of the same name as its type; the connector goes by the name."""
_DESCRIPTION: Final = f"""\
SELECT json_build_object(
    'oid', c.oid::bigint, 'schema', n.nspname, 'table', c.relname, 'kind', c.relkind,
    'identity', c.relreplident, 'filenode', c.relfilenode::bigint,
    'primary_key', {_KEY.format(kind="x.indisprimary AND x.indimmediate")},
    'identity_index', {_KEY.format(kind="x.indisreplident")},
    'columns', COALESCE((
        SELECT json_agg(json_build_object(
            'number', a.attnum, 'name', a.attname,
            {_DECLARED},
            'missing', (a.attmissingval::text::text[])[1],
            'namesake', ({_NAMESAKE}),
            'default', a.attgenerated = '' AND (
                a.atthasdef OR a.attidentity <> '' OR t.typdefault IS NOT NULL),
            'labels', i.labels, 'parts', COALESCE(i.parts, ''))
            ORDER BY a.attnum)
  FROM {ATTRIBUTES}
  CROSS JOIN LATERAL ({_INSIDE}
  ) i(labels, parts)
 WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped), '[]'))::text
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind IN ('r', 'p') AND c.oid = """

DESCRIPTION: Final = f"{_DESCRIPTION}%s"
"""A query for a table as JSON, by its OID; it returns no row if there is no such table."""

_SETTINGS: Final = "\n".join(f"    SET {name} = {value}" for name, value in SPELLING.items())
_DESCRIBE: Final = f"""\
CREATE OR REPLACE FUNCTION {CONTROL_SCHEMA}.describe(relation oid) RETURNS text
    LANGUAGE plpgsql STABLE
{_SETTINGS.replace("ISO, YMD", "'ISO, YMD'")}
AS $body$
BEGIN
    RETURN ({_DESCRIPTION}relation);
END
$body$"""

_NOTE: Final = f"""\
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
       AND n.nspname !~ '^pg_' AND n.nspname NOT IN ('information_schema', {_CONTROL});
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

_AVRO_NAME: Final = f"""\
CREATE OR REPLACE FUNCTION {CONTROL_SCHEMA}.avro_name(name text) RETURNS text
    LANGUAGE sql IMMUTABLE
    SET search_path = pg_catalog, pg_temp
    SET standard_conforming_strings = on
AS $body$
    SELECT lower(regexp_replace(regexp_replace(regexp_replace(
        name, '[\U00010000-\U0010ffff]', '__', 'g'), '[^A-Za-z0-9_]', '_', 'g'), '^(?=[0-9])', '_'))
$body$"""
"""Matches ``cdc/events/names.py``: the connector replaces a character beyond the BMP by two."""

_LEAVE_OUT: Final = f"""\
CREATE OR REPLACE FUNCTION {CONTROL_SCHEMA}.leave_out_unreadable(relation oid) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    SET standard_conforming_strings = on
AS $body$
DECLARE
    harmless CONSTANT text[] := string_to_array({_HARMLESS}, ' ');
    noted jsonb[];
    publication text;
    why text;
BEGIN
    SELECT array_agg(n.columns ORDER BY n.id DESC) INTO noted FROM (
        SELECT s.id, s.structure::jsonb -> 'columns' AS columns FROM {STRUCTURE} s
         WHERE s.table_oid = relation::bigint ORDER BY s.id DESC LIMIT 2) n;
    SELECT 'two of its columns have one name in Avro' INTO why FROM pg_attribute a
     WHERE a.attrelid = relation AND a.attnum > 0 AND NOT a.attisdropped
     GROUP BY {CONTROL_SCHEMA}.avro_name(a.attname) HAVING count(*) > 1 LIMIT 1;
    IF NOT EXISTS (SELECT FROM pg_attribute a
                    WHERE a.attrelid = relation AND a.attnum > 0 AND NOT a.attisdropped) THEN
        why := 'it has no column left';
    END IF;
    IF why IS NULL AND noted[2] IS NOT NULL THEN  -- what was there before is left out already
        SELECT 'values of its new column may end the connector: ' || (c ->> 'name') INTO why
          FROM jsonb_array_elements(noted[1]) c
         WHERE c ->> 'element' <> '' AND c ->> 'element' <> ALL (harmless)
           AND NOT (c ->> 'generated')::boolean AND NOT EXISTS (
               SELECT FROM jsonb_array_elements(noted[2]) o
                WHERE (o ->> 'number', o ->> 'type') = (c ->> 'number', c ->> 'type'))
         LIMIT 1;
    END IF;
    IF why IS NULL THEN
        RETURN;
    END IF;
    FOR publication IN
        SELECT p.pubname FROM pg_publication p
          JOIN pg_publication_rel r ON r.prpubid = p.oid AND r.prrelid = relation
         WHERE EXISTS (SELECT FROM pg_publication_rel o WHERE o.prpubid = p.oid
                          AND o.prrelid = {standard_string(str(HEARTBEAT))}::regclass)
    LOOP
        RAISE WARNING 'wal2lake: % leaves publication %: %', relation::regclass, publication, why;
        EXECUTE format('ALTER PUBLICATION %I DROP TABLE ONLY %s', publication, relation::regclass);
    END LOOP;
EXCEPTION WHEN OTHERS THEN
    RAISE WARNING 'wal2lake: % stays published: %', relation::regclass, SQLERRM;
END
$body$"""
"""Such a table makes the connector fail, and with it the capture of all others. No setting helps
then: the connector reads a table's description before it checks whether it captures the table, and
cannot exclude a column that it does not know yet. So no row of the table may be published with
these columns: the table leaves the publication in the transaction of the DDL, which is already
noted. A table without columns makes the first snapshot fail; once it has left the publication, the
connector can be told to ignore it (cdc/capture/passed_over.py).
"""

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
       AND d.schema_name NOT IN ('information_schema', {_CONTROL});
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

_FAILURE: Final = f"""\
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

SUPERSEDED: Final = (
    f"DROP FUNCTION IF EXISTS {CONTROL_SCHEMA}.note(oid, text, int, boolean)",
    f"DROP FUNCTION IF EXISTS {CONTROL_SCHEMA}.leave_out_clashing(oid)",
)
"""Statements that drop functions of earlier versions which ``CREATE OR REPLACE`` leaves behind."""
FUNCTIONS: Final = (
    _DESCRIBE,
    _NOTE,
    _FAILURE,
    _AVRO_NAME,
    _LEAVE_OUT,
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
