"""Changes of a table's structure among changes of rows; each runs twice (``{n}`` is 0 or 1)."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change of the table ``lab.{name}{n}``, which begins with ten rows ``id``, ``a``, ``b``.

    A column's type changes at the beginning of a step only, when the connector has read all from
    before: it may take the type's name from the future (docs/decisions/0011).

    ``stops`` is what the reason says where the table cannot follow.
    """

    name: str
    steps: tuple[str, ...]
    made: str = (
        "CREATE TABLE lab.{t} (id int PRIMARY KEY, a int, b text);"
        "INSERT INTO lab.{t} SELECT i, i, 'b' || i FROM generate_series(1, 10) i"
    )
    stops: str = ""


_BAG: Final = (
    "CREATE TABLE lab.{t} (id int, a int, b text); ALTER TABLE lab.{t} REPLICA IDENTITY FULL;"
    "INSERT INTO lab.{t} SELECT i % 3, 1, 'b' FROM generate_series(1, 10) i"
)

CHANGES: Final = (
    Change(
        name="s_add",
        steps=(
            (
                "UPDATE lab.{t} SET a = 0 WHERE id = 1; ALTER TABLE lab.{t} ADD c text;"
                "INSERT INTO lab.{t} VALUES (11, 1, 'x', 'new');"
                "UPDATE lab.{t} SET c = 'c' WHERE id = 2"
            ),
            "ALTER TABLE lab.{t} ADD d int[]; UPDATE lab.{t} SET d = '{{1,2}}' WHERE id = 3",
        ),
    ),
    Change(
        name="s_default",
        steps=(
            (
                "BEGIN; UPDATE lab.{t} SET a = 0 WHERE id = 1;"
                "ALTER TABLE lab.{t} ADD c int DEFAULT 7, ADD d text NOT NULL DEFAULT 'it''s',"
                " ADD e numeric(8,2) DEFAULT 1.50, ADD f bool DEFAULT true;"
                "INSERT INTO lab.{t} (id, d) VALUES (11, 'own');"
                "UPDATE lab.{t} SET c = 8 WHERE id = 2; COMMIT"
            ),
            (
                "ALTER TABLE lab.{t} ADD g timestamptz DEFAULT now(), ADD h date DEFAULT "
                "'2020-02-29', ADD i bytea DEFAULT '\\xdeadbeef', ADD j float8 DEFAULT 'NaN';"
                "DELETE FROM lab.{t} WHERE id = 3"
            ),
        ),
    ),
    Change(
        name="s_volatile",
        steps=("ALTER TABLE lab.{t} ADD c float8 DEFAULT random(); UPDATE lab.{t} SET a = 0",),
        stops="each its own",
    ),
    Change(
        name="s_drop",
        steps=(
            (
                "BEGIN; UPDATE lab.{t} SET b = 'gone' WHERE id = 1; ALTER TABLE lab.{t} DROP b;"
                "INSERT INTO lab.{t} VALUES (11, 11); COMMIT"
            ),
            "UPDATE lab.{t} SET a = 12 WHERE id = 2",
        ),
    ),
    Change(
        name="s_rename",
        steps=(
            (
                "BEGIN; UPDATE lab.{t} SET b = 'before' WHERE id = 1;"
                'ALTER TABLE lab.{t} RENAME b TO "B new";'
                "UPDATE lab.{t} SET \"B new\" = 'after' WHERE id = 2; COMMIT"
            ),
            "ALTER TABLE lab.{t} RENAME id TO number; UPDATE lab.{t} SET number = 99 WHERE a = 3",
        ),
    ),
    Change(
        name="s_swap_names",
        steps=(
            (
                "BEGIN; ALTER TABLE lab.{t} ADD c text; UPDATE lab.{t} SET c = 'c' || id;"
                "ALTER TABLE lab.{t} RENAME b TO x; ALTER TABLE lab.{t} RENAME c TO b;"
                "ALTER TABLE lab.{t} RENAME x TO c; UPDATE lab.{t} SET b = 'now b' WHERE id = 4;"
                "COMMIT"
            ),
        ),
    ),
    Change(
        name="s_again",
        steps=(
            "INSERT INTO lab.{t} VALUES (11, 1, 'text')",
            (
                "BEGIN; ALTER TABLE lab.{t} DROP b; ALTER TABLE lab.{t} ADD b int;"
                "UPDATE lab.{t} SET b = 5 WHERE id = 1; COMMIT"
            ),
            "ALTER TABLE lab.{t} DROP b, ADD b date DEFAULT '2001-02-03'",
        ),
    ),
    Change(
        name="s_widen",
        made=(
            "CREATE TABLE lab.{t} (id int PRIMARY KEY, a int, b varchar(10), c numeric(8,2),"
            " d real, e smallint);"
            "INSERT INTO lab.{t} SELECT i, i, 'b' || i, i / 4.0, i / 3.0, i "
            "FROM generate_series(1, 10) i"
        ),
        steps=(
            "UPDATE lab.{t} SET a = 5 WHERE id = 1",
            (
                "ALTER TABLE lab.{t} ALTER a TYPE bigint, ALTER c TYPE numeric(12,4), "
                "ALTER d TYPE float8, ALTER e TYPE int, ALTER b TYPE text;"
                "INSERT INTO lab.{t} VALUES (11, 5000000000, repeat('x', 50), 12345.6789, 1e300,"
                " 100000)"
            ),
            "ALTER TABLE lab.{t} ALTER a TYPE text; UPDATE lab.{t} SET a = 'word' WHERE id = 2",
        ),
    ),
    Change(
        name="s_narrow",
        steps=(
            (
                "ALTER TABLE lab.{t} ALTER a TYPE smallint;"
                "UPDATE lab.{t} SET a = -1, b = 'n' WHERE id = 1"
            ),
        ),
    ),
    Change(
        name="s_cut_off",
        steps=("ALTER TABLE lab.{t} ALTER b TYPE varchar(20); UPDATE lab.{t} SET b = 'n'",),
        stops="may have changed",
    ),
    Change(
        name="s_using",
        made=(
            "CREATE TABLE lab.{t} (id int PRIMARY KEY, a int, b text);"
            "INSERT INTO lab.{t} SELECT i, i, i FROM generate_series(1, 10) i"
        ),
        steps=(
            "UPDATE lab.{t} SET a = 0 WHERE id = 1",
            "ALTER TABLE lab.{t} ALTER b TYPE int USING b::int; UPDATE lab.{t} SET b = 1",
        ),
        stops="converted by an expression",
    ),
    Change(
        name="s_not_null",
        steps=(
            (
                "ALTER TABLE lab.{t} ALTER a SET NOT NULL;"
                "INSERT INTO lab.{t} VALUES (11, 1, NULL);"
                "ALTER TABLE lab.{t} ALTER a DROP NOT NULL; INSERT INTO lab.{t} VALUES (12)"
            ),
        ),
    ),
    Change(
        name="s_key_changed",
        steps=(
            (
                "BEGIN; UPDATE lab.{t} SET b = 'k' WHERE id = 1;"
                "ALTER TABLE lab.{t} DROP CONSTRAINT {t}_pkey, ALTER b SET NOT NULL,"
                " ADD PRIMARY KEY (b); UPDATE lab.{t} SET id = 100 WHERE b = 'b2'; COMMIT"
            ),
            (
                "UPDATE lab.{t} SET b = 'moved' WHERE b = 'b3'; DELETE FROM lab.{t} WHERE b = 'b4';"
                "INSERT INTO lab.{t} VALUES (100, 100, 'same number')"
            ),
        ),
    ),
    Change(
        name="s_key_back",
        steps=(
            (
                "ALTER TABLE lab.{t} DROP CONSTRAINT {t}_pkey;"
                "ALTER TABLE lab.{t} ADD PRIMARY KEY (id); UPDATE lab.{t} SET a = 0 WHERE id = 1"
            ),
        ),
    ),
    Change(
        name="s_key_returns",
        steps=(
            "ALTER TABLE lab.{t} DROP CONSTRAINT {t}_pkey",
            "ALTER TABLE lab.{t} ADD PRIMARY KEY (id); UPDATE lab.{t} SET a = 0 WHERE id = 1",
        ),
    ),
    Change(
        name="s_key_lost",
        steps=("ALTER TABLE lab.{t} DROP CONSTRAINT {t}_pkey",),
        stops="primary key",
    ),
    Change(
        name="s_key_dropped",
        steps=("ALTER TABLE lab.{t} DROP CONSTRAINT {t}_pkey; INSERT INTO lab.{t} VALUES (1)",),
        stops="primary key",
    ),
    Change(
        name="s_recreated",
        steps=(
            (
                "DROP TABLE lab.{t}; CREATE TABLE lab.{t} (id int PRIMARY KEY, a int, b text);"
                "INSERT INTO lab.{t} VALUES (1, 1, 'another')"
            ),
        ),
        stops="dropped",
    ),
    Change(name="s_gone", steps=("DROP TABLE lab.{t}",), stops="was dropped in"),
    Change(
        name="s_renamed_and_back",
        steps=(
            (
                "ALTER TABLE lab.{t} RENAME TO {t}_away; INSERT INTO lab.{t}_away VALUES (11);"
                "UPDATE lab.{t}_away SET a = -1 WHERE id = 1;"
                "ALTER TABLE lab.{t}_away RENAME TO {t}; INSERT INTO lab.{t} VALUES (12)"
            ),
        ),
        stops="was called lab.",
    ),
    Change(
        name="s_away_at_once",
        steps=(
            (
                "BEGIN; ALTER TABLE lab.{t} SET SCHEMA public; INSERT INTO public.{t} VALUES (11);"
                "ALTER TABLE public.{t} SET SCHEMA lab; COMMIT"
            ),
            "INSERT INTO lab.{t} VALUES (12)",
        ),
        stops="was called public.",
    ),
    Change(
        name="s_swapped_and_back",
        steps=(
            (
                "CREATE TABLE lab.{t}_new (LIKE lab.{t} INCLUDING ALL); BEGIN;"
                "ALTER TABLE lab.{t} RENAME TO {t}_old; ALTER TABLE lab.{t}_new RENAME TO {t};"
                "COMMIT; DELETE FROM lab.{t}_old WHERE id = 1; BEGIN;"
                "ALTER TABLE lab.{t} RENAME TO {t}_new; ALTER TABLE lab.{t}_old RENAME TO {t};"
                "COMMIT"
            ),
        ),
        stops="was ",
    ),
    Change(
        name="s_twin_columns",
        steps=(
            (
                'BEGIN; UPDATE lab.{t} SET a = 0; ALTER TABLE lab.{t} ADD "B" text;'
                "INSERT INTO lab.{t} VALUES (11, 1, 'low', 'UP'); COMMIT;"
                "UPDATE lab.{t} SET a = 1 WHERE id = 2"
            ),
        ),
        stops="have one name in Avro",
    ),
    Change(
        name="s_parent",
        steps=(
            (
                "CREATE TABLE public.{t}_child (c text) INHERITS (lab.{t});"
                "INSERT INTO public.{t}_child VALUES (100, 1, 'child', 'c');"
                "UPDATE lab.{t} SET b = b || '!'; DELETE FROM lab.{t} WHERE id IN (1, 100)"
            ),
            (
                "INSERT INTO public.{t}_child VALUES (101, 1, 'child', 'c'); TRUNCATE lab.{t};"
                "INSERT INTO lab.{t} VALUES (1, 1, 'again');"
                "INSERT INTO public.{t}_child VALUES (102, 1, 'child', 'c');"
                "ALTER TABLE public.{t}_child NO INHERIT lab.{t};"
                "ALTER TABLE public.{t}_child INHERIT lab.{t}; ALTER TABLE lab.{t} ADD d int;"
                "INSERT INTO lab.{t} VALUES (2, 2, 'two', 2); UPDATE lab.{t} SET a = 7"
            ),
        ),
    ),
    Change(
        name="s_unpublished",
        steps=(
            (
                "ALTER PUBLICATION wal2lake DROP TABLE lab.{t}; INSERT INTO lab.{t} VALUES (11);"
                "ALTER PUBLICATION wal2lake ADD TABLE lab.{t}; INSERT INTO lab.{t} VALUES (12)"
            ),
        ),
        stops="was not fully published",
    ),
    Change(
        name="s_bag",
        made=_BAG,
        steps=(
            (
                "BEGIN; DELETE FROM lab.{t} WHERE id = 1; ALTER TABLE lab.{t} ADD c int DEFAULT 3;"
                "INSERT INTO lab.{t} SELECT 2, 1, 'b', 3 FROM generate_series(1, 2);"
                "DELETE FROM lab.{t} WHERE ctid = (SELECT min(ctid) FROM lab.{t} WHERE id = 2);"
                "COMMIT"
            ),
            (
                "ALTER TABLE lab.{t} RENAME b TO d; ALTER TABLE lab.{t} DROP id;"
                "UPDATE lab.{t} SET c = 4 WHERE ctid = (SELECT max(ctid) FROM lab.{t})"
            ),
        ),
    ),
    Change(
        name="s_rolled_back",
        steps=(
            (
                "BEGIN; ALTER TABLE lab.{t} DROP b; INSERT INTO lab.{t} VALUES (11, 1); ROLLBACK;"
                "BEGIN; SAVEPOINT s; ALTER TABLE lab.{t} RENAME b TO c; ROLLBACK TO s;"
                "UPDATE lab.{t} SET b = 'kept'; COMMIT"
            ),
        ),
    ),
)


def table_of(change: Change, way: int) -> str:
    """Return the name of the change's table for one of its two runs."""
    return f"{change.name}{way}"


def changes_sql() -> str:
    """Return the statements that create the tables of all changes."""
    return ";\n".join(_filled(change.made, change, way) for change in CHANGES for way in (0, 1))


def change_script(change: Change, step: int, way: int) -> str:
    """Return the step's statements; empty if there is no such step."""
    return _filled(change.steps[step], change, way) if step < len(change.steps) else ""


def _filled(text: str, change: Change, way: int) -> str:
    return text.format(t=table_of(change, way))
