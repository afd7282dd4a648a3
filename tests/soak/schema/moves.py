"""Moves of whole tables: renames and returns, and names that conflict with each other.

Each move uses a copy of one of the database's tables, in a separate schema, so that the database's
own tables should go on; the test checks that they do.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from tests.soak.schema.facts import Database, Statement, Table, identifier
from tests.soak.schema.rows import insert

SCHEMA: Final = "moves"
ELSEWHERE: Final = "moves_elsewhere"
_MOST_ROWS: Final = 50
_NEW_ROWS: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A move of a table; each of ``steps`` is a transaction, in which ``<write t>`` writes rows.

    A move that renames its schema has one of its own. If ``follows`` is true, the table must not
    stop.
    """

    name: str
    steps: tuple[str, ...]
    follows: bool = False
    own_schema: bool = False

    @property
    def schema(self) -> str:
        """Return the schema of the move's table."""
        return f"{SCHEMA}_{self.name}" if self.own_schema else SCHEMA

    @property
    def quoted(self) -> str:
        """The name of the move's table with its schema; it needs no quotes."""
        return f"{self.schema}.{self.name}"

    def statements(self, rows: "Rows") -> Iterator[Statement]:
        """Yield the move's transactions, with rows of the copied table written in them."""
        for step in self.steps:
            sql = step
            for place in ("t", "away", "elsewhere", "moved"):
                target = {
                    "t": self.quoted,
                    "away": f"{self.schema}.{self.name}_away",
                    "elsewhere": f"{ELSEWHERE}.{self.name}",
                    "moved": f"{self.schema}_away.{self.name}",
                }[place]
                sql = sql.replace(f"<write {place}>", rows.written_to(target))
                sql = sql.replace(f"<{place}>", target)
            names = {"<name>": self.name, "<schema>": self.schema, "<other>": ELSEWHERE}
            for mark, text in names.items():
                sql = sql.replace(mark, text)
            yield Statement(kind=f"move: {self.name}", sql=sql)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """A writer that deletes rows and inserts them again, whatever their columns."""

    table: Table

    def written_to(self, target: str) -> str:
        """Return a DO block that deletes rows of the target and inserts most of them again."""
        names = ", ".join(column.quoted for column in self.table.given)
        some = f"SELECT tableoid, ctid FROM {target} LIMIT 3"
        gone = f"DELETE FROM {target} WHERE (tableoid, ctid) IN ({some}) RETURNING *"
        back = f"INSERT INTO {target} ({names}) OVERRIDING SYSTEM VALUE"
        # One row is not put back, so that a missed change makes a difference.
        put = f"{back} SELECT {names} FROM gone OFFSET 1"
        return (
            f"DO $soak$ BEGIN WITH gone AS ({gone}) {put};"
            " IF NOT FOUND THEN RAISE 'no row is written'; END IF; END $soak$"
        )


_AWAY: Final = "ALTER TABLE <t> RENAME TO <name>_away"
_BACK: Final = "ALTER TABLE <away> RENAME TO <name>"
_SWAP: Final = f"{_AWAY}; ALTER TABLE <t>_new RENAME TO <name>"
_SWAP_BACK: Final = f"ALTER TABLE <t> RENAME TO <name>_new; {_BACK}"
_OUT: Final = "ALTER TABLE <t> SET SCHEMA <other>"
_IN: Final = "ALTER TABLE <elsewhere> SET SCHEMA <schema>"
MOVES: Final = (
    Move(name="renamed", steps=(_AWAY, "<write away>", _BACK, "<write t>")),
    Move(name="renamed_at_once", steps=(f"{_AWAY};<write away>;{_BACK}", "<write t>")),
    Move(name="renamed_idle", steps=(_AWAY, _BACK, "<write t>")),
    Move(name="put_elsewhere", steps=(_OUT, "<write elsewhere>", _IN, "<write t>")),
    Move(name="put_elsewhere_at_once", steps=(f"{_OUT};<write elsewhere>;{_IN}", "<write t>")),
    Move(
        name="in_a_renamed_schema",
        own_schema=True,
        steps=(
            "ALTER SCHEMA <schema> RENAME TO <schema>_away",
            "<write moved>",
            "ALTER SCHEMA <schema>_away RENAME TO <schema>",
            "<write t>",
        ),
    ),
    Move(
        name="swapped",
        steps=(
            "CREATE TABLE <t>_new (LIKE <t> INCLUDING ALL)",
            _SWAP,
            "<write away>",
            _SWAP_BACK,
            "<write t>",
        ),
    ),
    Move(
        name="swapped_at_once",
        steps=(
            "CREATE TABLE <t>_new (LIKE <t> INCLUDING ALL)",
            f"{_SWAP};<write away>;{_SWAP_BACK}",
            "<write t>",
        ),
    ),
    Move(
        name="rewritten",
        steps=("<write t>", "ALTER TABLE <t> SET (fillfactor = 50)", "<write t>"),
        follows=True,
    ),
    Move(
        name="with_a_child",
        steps=("CREATE TABLE <t>_child () INHERITS (<t>)", "<write t>"),
        follows=True,
    ),
    Move(
        name="with_a_passing_child",
        steps=(
            "CREATE TABLE <t>_child (LIKE <t> INCLUDING GENERATED)",
            "ALTER TABLE <t>_child INHERIT <t>",
            "<write t>",
            "ALTER TABLE <t>_child NO INHERIT <t>",
            "<write t>",
        ),
        follows=True,
    ),
    Move(
        name="with_a_twin_table",
        steps=('CREATE TABLE <schema>."With_A_Twin_Table" (id int PRIMARY KEY)', "<write t>"),
        follows=True,
    ),
    Move(
        name="beside_a_message",
        steps=(
            "SELECT pg_logical_emit_message(true, 'others', 'inside');<write t>",
            "SELECT pg_logical_emit_message(false, 'others', 'outside')",
            "<write t>",
        ),
        follows=True,
    ),
    Move(
        name="with_odd_names",
        steps=(
            'ALTER TABLE <t> ADD COLUMN "1 odd-Näme`${x}.y" text',
            "<write t>",
            'ALTER TABLE <t> ADD COLUMN "_metadata" text',
            "<write t>",
        ),
    ),
    Move(
        name="with_twin_columns",
        steps=(
            'ALTER TABLE <t> ADD COLUMN twin text; ALTER TABLE <t> ADD COLUMN "Twin" text',
            "<write t>",
            'ALTER TABLE <t> DROP COLUMN "Twin"',
            "<write t>",
        ),
    ),
    Move(
        name="with_a_renamed_twin",
        steps=(
            "ALTER TABLE <t> ADD COLUMN twin text; ALTER TABLE <t> ADD COLUMN other text",
            "<write t>",
            'ALTER TABLE <t> RENAME COLUMN other TO "TWIN"',
            "<write t>",
            'ALTER TABLE <t> RENAME COLUMN "TWIN" TO other',
            "<write t>",
        ),
    ),
    Move(
        name="with_one_name_in_avro",
        steps=(
            'ALTER TABLE <t> ADD COLUMN "a-b" text; ALTER TABLE <t> ADD COLUMN a_b text',
            "<write t>",
            "ALTER TABLE <t> DROP COLUMN a_b",
            "<write t>",
        ),
    ),
)
"""Every move runs once, on its own table: a table that a move stops can take no other."""
MAY_STOP: Final = frozenset(move.quoted for move in MOVES if not move.follows)


def model(database: Database, rng: random.Random) -> Table:
    """Choose the table to copy: one with a key and rows if possible."""
    whole = [table for table in database.tables if not table.partitioned and not table.parent]
    preferred = [table for table in whole if table.key and table.rows]
    return rng.choice(preferred or whole)


def created(database: Database, rng: random.Random) -> Iterator[tuple[Move, Table, Statement]]:
    """Yield each move with its model and the statement that creates its table."""
    for move in MOVES:
        table = model(database, rng)
        names = ", ".join(column.quoted for column in table.given)
        copied = (
            f"INSERT INTO {move.quoted} ({names}) OVERRIDING SYSTEM VALUE"
            f" SELECT {names} FROM {table.quoted} LIMIT {_MOST_ROWS}"
        )
        sql = (
            f"CREATE SCHEMA IF NOT EXISTS {identifier(move.schema)};"
            f"CREATE SCHEMA IF NOT EXISTS {ELSEWHERE};"
            f"CREATE TABLE {move.quoted} (LIKE {table.quoted} INCLUDING ALL);"
        )
        rows = copied if table.rows else ";".join(_new_rows(move, table, rng))
        yield move, table, Statement(kind="created", sql=sql + rows)


def _new_rows(move: Move, table: Table, rng: random.Random) -> Iterator[str]:
    """Yield inserts for a model without rows: an empty table would have nothing to lose."""
    columns = tuple(replace(column, references=None) for column in table.columns)
    empty = replace(table, schema=move.schema, name=move.name, columns=columns)
    for _ in range(_NEW_ROWS):
        yield insert(empty, rng).sql
