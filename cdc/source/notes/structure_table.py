"""Defines the table ``wal2lake.structure``, which holds the notes of changes of a structure."""

from typing import Final

from cdc.events.values.sql_text import postgres_string
from cdc.tables import CONTROL_SCHEMA

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

CONTROL_LITERAL: Final = postgres_string(CONTROL_SCHEMA)
"""The name of wal2lake's own schema as SQL writes a string."""
BASELINE: Final = "BASELINE"
"""The command of a baseline note, which no DDL caused: cdc/source/notes/baseline.py."""
UNNOTED: Final = "UNNOTED"
"""The command of a note before which others may be missing: cdc/source/notes/unnoted.py."""
