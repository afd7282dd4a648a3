"""Define SQL functions that take a table out of the publication if the connector cannot read it."""

# ruff: noqa: S608 - every part of a statement is a constant of ours
from typing import Final

from cdc.events.values.pg_types import HARMLESS_IN_ARRAYS
from cdc.events.values.sql_text import standard_string
from cdc.tables import CONTROL_SCHEMA, HEARTBEAT, STRUCTURE

_HARMLESS: Final = standard_string(" ".join(sorted(HARMLESS_IN_ARRAYS)))

AVRO_NAME: Final = f"""\
CREATE OR REPLACE FUNCTION {CONTROL_SCHEMA}.avro_name(name text) RETURNS text
    LANGUAGE sql IMMUTABLE
    SET search_path = pg_catalog, pg_temp
    SET standard_conforming_strings = on
AS $body$
    SELECT lower(regexp_replace(regexp_replace(regexp_replace(
        name, '[\U00010000-\U0010ffff]', '__', 'g'), '[^A-Za-z0-9_]', '_', 'g'), '^(?=[0-9])', '_'))
$body$"""
"""Matches ``cdc/events/names.py``: the connector replaces a character beyond the BMP by two."""

LEAVE_OUT: Final = f"""\
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
connector can be told to ignore it (cdc/capture/exclude_unreadable.py).
"""
