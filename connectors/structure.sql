-- Notes changes of the structure of tables in wal2lake.structure, for a superuser to run once, and
-- again after an upgrade: psql -d <database> -f structure.sql. Where wal2lake's own role is
-- a superuser, `wal2lake up` does it by itself. To remove it, see docs/operations.md.
-- Made by `python -m cdc.source.notes.triggers`; a test compares.

BEGIN;

CREATE SCHEMA IF NOT EXISTS wal2lake;

CREATE TABLE IF NOT EXISTS wal2lake.structure (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    noted_at timestamptz NOT NULL,
    command text NOT NULL,       -- the command's tag
    rewrite int NOT NULL,        -- pg_event_trigger_table_rewrite_reason(); 0: the rows stayed
    converted boolean NOT NULL,  -- whether USING may have made the values of a rewrite
    table_oid bigint NOT NULL,
    table_schema text,
    table_name text,
    structure text               -- JSON; null when the table is gone
);

DROP FUNCTION IF EXISTS wal2lake.note(oid, text, int, boolean);

DROP FUNCTION IF EXISTS wal2lake.leave_out_clashing(oid);

CREATE OR REPLACE FUNCTION wal2lake.describe(relation oid) RETURNS text
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, pg_temp
    SET datestyle = 'ISO, YMD'
    SET intervalstyle = postgres
    SET timezone = UTC
    SET bytea_output = hex
    SET extra_float_digits = 1
AS $body$
BEGIN
    RETURN (SELECT json_build_object(
    'oid', c.oid::bigint, 'schema', n.nspname, 'table', c.relname, 'kind', c.relkind,
    'identity', c.relreplident, 'filenode', c.relfilenode::bigint,
    'primary_key', COALESCE((
        SELECT json_agg(a.attname ORDER BY k.place)
          FROM pg_index x, unnest(x.indkey) WITH ORDINALITY k(number, place)
          JOIN pg_attribute a ON a.attnum = k.number
         WHERE x.indrelid = c.oid AND a.attrelid = c.oid AND k.place <= x.indnkeyatts
           AND x.indisprimary AND x.indimmediate), '[]'),
    'identity_index', COALESCE((
        SELECT json_agg(a.attname ORDER BY k.place)
          FROM pg_index x, unnest(x.indkey) WITH ORDINALITY k(number, place)
          JOIN pg_attribute a ON a.attnum = k.number
         WHERE x.indrelid = c.oid AND a.attrelid = c.oid AND k.place <= x.indnkeyatts
           AND x.indisreplident), '[]'),
    'columns', COALESCE((
        SELECT json_agg(json_build_object(
            'number', a.attnum, 'name', a.attname,
            'type', COALESCE(b.typname, t.typname),
            'kind', COALESCE(b.typtype, t.typtype),
            'modifier', CASE WHEN t.typtype = 'd' THEN b.modifier ELSE a.atttypmod END,
            'element', COALESCE(e.typname, ''),
            'element_kind', COALESCE(e.typtype::text, ''),
            'domain', CASE WHEN t.typtype = 'd' THEN t.typname ELSE '' END,
            'dimensions', a.attndims,
            'not_null', a.attnotnull,
            'generated', a.attgenerated <> '',
            'missing', (a.attmissingval::text::text[])[1],
            'namesake', (
                SELECT concat('pg_catalog.', o.typname) FROM pg_type y
                  JOIN pg_type o ON o.typname = y.typname AND o.oid <> y.oid
                       AND o.typnamespace = 'pg_catalog'::regnamespace
                 WHERE y.oid = ANY (ARRAY[t.oid, CASE WHEN t.typcategory = 'A' THEN t.typelem END])
                 ORDER BY y.oid = t.oid LIMIT 1),
            'default', a.attgenerated = '' AND (
                a.atthasdef OR a.attidentity <> '' OR t.typdefault IS NOT NULL),
            'labels', i.labels, 'parts', COALESCE(i.parts, ''))
            ORDER BY a.attnum)
  FROM pg_attribute a
  JOIN pg_type t ON t.oid = a.atttypid
  LEFT JOIN LATERAL (
       WITH RECURSIVE domains(oid, modifier) AS (
           SELECT t.typbasetype, t.typtypmod WHERE t.typtype = 'd'
           UNION ALL
           SELECT o.typbasetype, o.typtypmod
             FROM domains d JOIN pg_type o ON o.oid = d.oid AND o.typtype = 'd')
       SELECT o.*, d.modifier FROM domains d JOIN pg_type o ON o.oid = d.oid AND o.typtype <> 'd'
       ) b ON true
  LEFT JOIN pg_type e ON e.oid = COALESCE(b.typelem, t.typelem)
       AND COALESCE(b.typcategory, t.typcategory) = 'A'
  CROSS JOIN LATERAL (
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
                     AND NOT s.attisdropped)
  ) i(labels, parts)
 WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped), '[]'))::text
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind IN ('r', 'p') AND c.oid = relation);
END
$body$;

CREATE OR REPLACE FUNCTION wal2lake.note(
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
       AND n.nspname !~ '^pg_' AND n.nspname NOT IN ('information_schema', 'wal2lake');
    IF NOT FOUND THEN
        RETURN;
    END IF;
    BEGIN
        described := wal2lake.describe(relation);
        IF publication IS NOT NULL THEN
            described := (described::jsonb
                          || jsonb_build_object('unpublished_from', publication))::text;
        END IF;
    EXCEPTION WHEN OTHERS THEN
        described := json_build_object('oid', relation::bigint, 'failed', SQLSTATE);
        RAISE WARNING 'wal2lake: the structure of % is not known: %', relation::regclass, SQLERRM;
    END;
    INSERT INTO wal2lake.structure AS s (noted_at, command, rewrite, converted, table_oid,
                                  table_schema, table_name, structure)
    VALUES (clock_timestamp(), command, reason, reason & 4 <> 0 AND expressed, relation::bigint,
            named.nspname, named.relname, described)
    RETURNING s.id INTO made;
    IF made % 256 = 0 THEN  -- what is in the WAL is not needed here
        DELETE FROM wal2lake.structure o WHERE o.id IN (
            SELECT i.id FROM wal2lake.structure i WHERE i.id < made - 4096 AND i.command <> 'BASELINE'
             ORDER BY i.id LIMIT 1024 FOR UPDATE SKIP LOCKED);
    END IF;
END
$body$;

CREATE OR REPLACE FUNCTION wal2lake.note_failure(command text, state text, message text)
    RETURNS void LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
AS $body$
BEGIN
    RAISE WARNING 'wal2lake: % is not noted: %', command, message;
    INSERT INTO wal2lake.structure (noted_at, command, rewrite, converted, table_oid, structure)
    VALUES (clock_timestamp(), command, 0, false, 0, json_build_object('oid', 0, 'failed', state));
EXCEPTION WHEN OTHERS THEN
    RAISE WARNING 'wal2lake: nor is that: %', SQLERRM;
END
$body$;

CREATE OR REPLACE FUNCTION wal2lake.avro_name(name text) RETURNS text
    LANGUAGE sql IMMUTABLE
    SET search_path = pg_catalog, pg_temp
    SET standard_conforming_strings = on
AS $body$
    SELECT lower(regexp_replace(regexp_replace(regexp_replace(
        name, '[𐀀-􏿿]', '__', 'g'), '[^A-Za-z0-9_]', '_', 'g'), '^(?=[0-9])', '_'))
$body$;

CREATE OR REPLACE FUNCTION wal2lake.leave_out_unreadable(relation oid) RETURNS void
    LANGUAGE plpgsql
    SET search_path = pg_catalog, pg_temp
    SET standard_conforming_strings = on
AS $body$
DECLARE
    harmless CONSTANT text[] := string_to_array('bool bpchar bytea char cidr date daterange float4 float8 inet int2 int4 int4range int8 int8range interval json jsonb macaddr macaddr8 money name numrange oid text time timestamp timestamptz timetz tsrange tstzrange uuid varbit varchar xml', ' ');
    noted jsonb[];
    publication text;
    why text;
BEGIN
    SELECT array_agg(n.columns ORDER BY n.id DESC) INTO noted FROM (
        SELECT s.id, s.structure::jsonb -> 'columns' AS columns FROM wal2lake.structure s
         WHERE s.table_oid = relation::bigint ORDER BY s.id DESC LIMIT 2) n;
    SELECT 'two of its columns have one name in Avro' INTO why FROM pg_attribute a
     WHERE a.attrelid = relation AND a.attnum > 0 AND NOT a.attisdropped
     GROUP BY wal2lake.avro_name(a.attname) HAVING count(*) > 1 LIMIT 1;
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
                          AND o.prrelid = 'wal2lake.heartbeat'::regclass)
    LOOP
        RAISE WARNING 'wal2lake: % leaves publication %: %', relation::regclass, publication, why;
        EXECUTE format('ALTER PUBLICATION %I DROP TABLE ONLY %s', publication, relation::regclass);
    END LOOP;
EXCEPTION WHEN OTHERS THEN
    RAISE WARNING 'wal2lake: % stays published: %', relation::regclass, SQLERRM;
END
$body$;

CREATE OR REPLACE FUNCTION wal2lake.note_changed() RETURNS event_trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
    SET standard_conforming_strings = on
AS $body$
DECLARE
    rewritten CONSTANT text[] :=
        string_to_array(current_setting('wal2lake.rewritten', true), ' ');
    stack text;
    expressed boolean;
    renamed boolean;
    relations oid[];
    relation oid;
    reason int;
    publication text;
BEGIN
    PERFORM set_config('wal2lake.rewritten', '', true);
    -- A statement of the client stands in the query's text, one of a function does not.
    GET DIAGNOSTICS stack = PG_CONTEXT;
    expressed := COALESCE(stack ~ '\n' OR current_query() !~* '\malter\s+table\M'
                          OR current_query() ~* '\musing\M', true);
    renamed := COALESCE(stack ~ '\n' OR current_query() !~* '\malter\s+publication\M'
                        OR current_query() ~* '\mrename\M', true);
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
                                 WHERE r ~ ('^' || t.oid || ':[0-9]{1,3}$')), 0)
          FROM tables t ORDER BY t.oid
    LOOP
        PERFORM wal2lake.note(relation, TG_TAG, reason, expressed, NULL);
        PERFORM wal2lake.leave_out_unreadable(relation);
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
            PERFORM wal2lake.note(relation, TG_TAG, 0, false, publication);
        END LOOP;
    END IF;
EXCEPTION WHEN OTHERS THEN
    PERFORM wal2lake.note_failure(TG_TAG, SQLSTATE, SQLERRM);
END
$body$;

CREATE OR REPLACE FUNCTION wal2lake.note_rewritten() RETURNS event_trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
AS $body$
BEGIN  -- read at the end of the command
    PERFORM set_config('wal2lake.rewritten', concat_ws(' ',
        NULLIF(current_setting('wal2lake.rewritten', true), ''),
        concat(pg_event_trigger_table_rewrite_oid(), ':',
               pg_event_trigger_table_rewrite_reason())), true);
EXCEPTION WHEN OTHERS THEN
    PERFORM wal2lake.note_failure(TG_TAG, SQLSTATE, SQLERRM);
END
$body$;

CREATE OR REPLACE FUNCTION wal2lake.note_gone() RETURNS event_trigger
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, pg_temp
    SET standard_conforming_strings = on
AS $body$
DECLARE
    relation oid;
    publication text;
BEGIN
    INSERT INTO wal2lake.structure (noted_at, command, rewrite, converted, table_oid,
                             table_schema, table_name)
    SELECT clock_timestamp(), TG_TAG, 0, false, d.objid::bigint, d.schema_name, d.object_name
      FROM pg_event_trigger_dropped_objects() d
     WHERE d.object_type = 'table' AND NOT d.is_temporary AND d.schema_name !~ '^pg_'
       AND d.schema_name NOT IN ('information_schema', 'wal2lake');
    FOR relation, publication IN  -- that left a publication, whole or with a part of its rows
        SELECT c.oid, d.address_args[1] FROM pg_event_trigger_dropped_objects() d
          JOIN pg_namespace n ON n.nspname = d.address_names[1]
          JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = d.address_names[2]
         WHERE d.object_type = 'publication relation'
    LOOP
        PERFORM wal2lake.note(relation, TG_TAG, 0, false, publication);
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
        PERFORM wal2lake.note(relation, TG_TAG, 0, false, NULL);
        PERFORM wal2lake.leave_out_unreadable(relation);
    END LOOP;
EXCEPTION WHEN OTHERS THEN
    PERFORM wal2lake.note_failure(TG_TAG, SQLSTATE, SQLERRM);
END
$body$;

DO $body$
BEGIN
    IF NOT EXISTS (SELECT FROM wal2lake.structure WHERE command <> 'BASELINE')
       OR NOT EXISTS (SELECT FROM unnest(ARRAY['wal2lake_changed', 'wal2lake_rewritten', 'wal2lake_gone']) AS w(name)
  LEFT JOIN pg_event_trigger e ON e.evtname = w.name
  LEFT JOIN pg_description d ON d.objoid = e.oid AND d.classoid = 'pg_event_trigger'::regclass
 WHERE e.evtenabled IS DISTINCT FROM 'A' OR age(e.xmin) < age(d.xmin)) THEN
        RETURN;
    END IF;
    INSERT INTO wal2lake.structure (noted_at, command, rewrite, converted, table_oid,
                             table_schema, table_name, structure)
    SELECT clock_timestamp(), 'UNNOTED', 0, false, c.oid::bigint, n.nspname, c.relname,
           f.described::text
      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      CROSS JOIN LATERAL (SELECT wal2lake.describe(c.oid)::jsonb AS described) f
     WHERE n.nspname <> 'wal2lake' AND EXISTS (  -- of a publication of ours
           SELECT FROM pg_publication_rel r JOIN pg_publication_rel o ON o.prpubid = r.prpubid
            WHERE r.prrelid = c.oid AND o.prrelid = to_regclass('wal2lake.heartbeat'))
       AND (LEAST(age(c.xmin),
                  (SELECT min(age(a.xmin)) FROM pg_attribute a WHERE a.attrelid = c.oid),
                  (SELECT min(age(r.xmin)) FROM pg_publication_rel r WHERE r.prrelid = c.oid))
            < COALESCE((SELECT min(age(s.xmin)) FROM wal2lake.structure s WHERE s.table_oid = c.oid),
                       2147483647)
            OR f.described <> (SELECT s.structure::jsonb - 'unpublished_from' FROM wal2lake.structure s
                                WHERE s.table_oid = c.oid ORDER BY s.id DESC LIMIT 1));
END
$body$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA wal2lake FROM PUBLIC;

DROP EVENT TRIGGER IF EXISTS wal2lake_changed;

CREATE EVENT TRIGGER wal2lake_changed ON ddl_command_end
    WHEN TAG IN ('ALTER TABLE', 'ALTER INDEX', 'CREATE TABLE', 'CREATE TABLE AS', 'SELECT INTO', 'CREATE SCHEMA', 'ALTER SCHEMA', 'ALTER TYPE', 'ALTER DOMAIN', 'ALTER PUBLICATION')
    EXECUTE FUNCTION wal2lake.note_changed();

ALTER EVENT TRIGGER wal2lake_changed ENABLE ALWAYS;

COMMENT ON EVENT TRIGGER wal2lake_changed IS 'wal2lake ab903119930ec215';

DROP EVENT TRIGGER IF EXISTS wal2lake_rewritten;

CREATE EVENT TRIGGER wal2lake_rewritten ON table_rewrite
    EXECUTE FUNCTION wal2lake.note_rewritten();

ALTER EVENT TRIGGER wal2lake_rewritten ENABLE ALWAYS;

COMMENT ON EVENT TRIGGER wal2lake_rewritten IS 'wal2lake ab903119930ec215';

DROP EVENT TRIGGER IF EXISTS wal2lake_gone;

CREATE EVENT TRIGGER wal2lake_gone ON sql_drop
    EXECUTE FUNCTION wal2lake.note_gone();

ALTER EVENT TRIGGER wal2lake_gone ENABLE ALWAYS;

COMMENT ON EVENT TRIGGER wal2lake_gone IS 'wal2lake ab903119930ec215';

COMMIT;
