-- What the pipeline needs in the source, for a DBA to run once where the pipeline's role may not create it.
-- Superuser, or the owner of the tables; psql -d <database> -f source.sql after the names below are set:
--   the role (wal2lake), the publication (the key `name` of wal2lake.yaml), the tables.
-- postgresql.conf: wal_level = logical; a finite max_slot_wal_keep_size, so that a pipeline that is down
-- costs it its slot and not the source its disk.

-- The role: streams WAL and reads the tables, nothing else. Give it a password with \password wal2lake, and in
-- pg_hba.conf only this database, from the worker's and the job's hosts.
CREATE ROLE wal2lake LOGIN REPLICATION;
GRANT USAGE ON SCHEMA public TO wal2lake;
GRANT SELECT ON public.customers, public.orders TO wal2lake;
-- Row security would hide rows from the snapshot: ALTER ROLE wal2lake BYPASSRLS where a table uses it.

-- Our own tables. The heartbeat moves the slot while the captured tables rest; in structure the event triggers
-- of structure.sql, which is for a superuser to run after this, note every change of a table's columns.
CREATE SCHEMA IF NOT EXISTS wal2lake;
CREATE TABLE IF NOT EXISTS wal2lake.heartbeat
    (id int PRIMARY KEY, token text NOT NULL, at timestamptz NOT NULL);
INSERT INTO wal2lake.heartbeat VALUES (1, '', now()) ON CONFLICT DO NOTHING;
CREATE TABLE IF NOT EXISTS wal2lake.structure (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, noted_at timestamptz NOT NULL, command text NOT NULL,
    rewrite int NOT NULL, converted boolean NOT NULL, table_oid bigint NOT NULL, table_schema text,
    table_name text, structure text);
GRANT USAGE ON SCHEMA wal2lake TO wal2lake;
GRANT SELECT, INSERT, UPDATE ON wal2lake.heartbeat, wal2lake.structure TO wal2lake;

-- Exactly the tables that wal2lake.yaml names, never FOR ALL TABLES: once a table without a primary key and
-- with the default replica identity is published, Postgres refuses every UPDATE and DELETE of it.
CREATE PUBLICATION wal2lake FOR TABLE
    wal2lake.heartbeat, wal2lake.structure, public.customers, public.orders;

-- A table without a primary key, to be kept as a multiset of its rows:
-- ALTER TABLE public.readings REPLICA IDENTITY FULL;
