"""Scenarios that need a table of their own: truncates, other identities, partitions, odd shapes.

Each is run twice, on tables with different names (``{n}`` is 0 or 1).
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Own:
    """A scenario on its own ``tables``, which are compared; for ``steps`` see ``Scenario``."""

    name: str
    tables: tuple[str, ...]
    made: str
    steps: tuple[str, ...]


OWN: Final = (
    Own(
        name="truncate_between_rows",
        tables=("cut{n}", "cut_child{n}", "cut_other{n}"),
        made="CREATE TABLE lab.cut{n} (id int PRIMARY KEY, v text);"
        "CREATE TABLE lab.cut_child{n} (id int PRIMARY KEY, up int REFERENCES lab.cut{n});"
        "CREATE TABLE lab.cut_other{n} (id serial PRIMARY KEY, v text);"
        "INSERT INTO lab.cut{n} SELECT i, 'old' FROM generate_series(1, 50) i;"
        "INSERT INTO lab.cut_child{n} SELECT i, i FROM generate_series(1, 50) i;"
        "INSERT INTO lab.cut_other{n} (v) SELECT 'old' FROM generate_series(1, 50)",
        steps=(
            (
                "BEGIN; INSERT INTO lab.cut{n} VALUES (60, 'before');"
                "UPDATE lab.cut{n} SET v = 'gone' WHERE id = 1; TRUNCATE lab.cut{n} CASCADE;"
                "INSERT INTO lab.cut{n} VALUES (1, 'after'), (2, 'after');"
                "INSERT INTO lab.cut_child{n} VALUES (1, 1); COMMIT"
            ),
            (
                "TRUNCATE lab.cut_other{n} RESTART IDENTITY;"
                "INSERT INTO lab.cut_other{n} (v) VALUES ('first again')"
            ),
            (
                "BEGIN; INSERT INTO lab.cut_other{n} (v) VALUES ('x');"
                "TRUNCATE lab.cut{n}, lab.cut_child{n}, lab.cut_other{n}; COMMIT;"
                "INSERT INTO lab.cut{n} VALUES (2, 'last')"
            ),
        ),
    ),
    Own(
        name="rows_without_a_key",
        tables=("bag{n}",),
        made="CREATE TABLE lab.bag{n} (x int, y text, big text);"
        "ALTER TABLE lab.bag{n} ALTER big SET STORAGE EXTERNAL, REPLICA IDENTITY FULL;"
        "INSERT INTO lab.bag{n} SELECT i % 3, NULL, repeat('b', 9000) FROM generate_series(1, 9) i",
        steps=(
            (
                "INSERT INTO lab.bag{n} SELECT i % 3, 'y', NULL FROM generate_series(1, 9) i;"
                "UPDATE lab.bag{n} SET y = 'z' WHERE ctid IN "
                "(SELECT ctid FROM lab.bag{n} WHERE x = 1 LIMIT 2)"
            ),
            "DELETE FROM lab.bag{n} WHERE ctid = (SELECT min(ctid) FROM lab.bag{n} WHERE x = 2)",
            (
                "BEGIN; INSERT INTO lab.bag{n} VALUES (9, 'short', 'lived');"
                "DELETE FROM lab.bag{n} WHERE x = 9; UPDATE lab.bag{n} SET x = x; COMMIT"
            ),
        ),
    ),
    Own(
        name="key_that_is_an_index",
        tables=("indexed{n}",),
        made="CREATE TABLE lab.indexed{n} (a int NOT NULL, b text NOT NULL, big text, v int);"
        "CREATE UNIQUE INDEX indexed_key{n} ON lab.indexed{n} (a, b);"
        "ALTER TABLE lab.indexed{n} REPLICA IDENTITY USING INDEX indexed_key{n};"
        "ALTER TABLE lab.indexed{n} ALTER big SET STORAGE EXTERNAL;"
        "INSERT INTO lab.indexed{n} SELECT i, 'b' || i, repeat('x' || i, 3000), i "
        "FROM generate_series(1, 9) i",
        steps=(
            (
                "UPDATE lab.indexed{n} SET v = -v; UPDATE lab.indexed{n} SET b = 'c' WHERE a = 2;"
                "DELETE FROM lab.indexed{n} WHERE a = 3"
            ),
            "UPDATE lab.indexed{n} SET a = a + 100, v = 0 WHERE a > 6",
        ),
    ),
    Own(
        name="key_of_several_columns",
        tables=("composite{n}",),
        made="CREATE TABLE lab.composite{n} (a int, b text, v text, big text, PRIMARY KEY (b, a));"
        "ALTER TABLE lab.composite{n} ALTER big SET STORAGE EXTERNAL;"
        "INSERT INTO lab.composite{n} SELECT i, 'b' || i % 2, 'old', repeat('x' || i, 3000) "
        "FROM generate_series(1, 9) i",
        steps=(
            (
                "UPDATE lab.composite{n} SET a = a + 10 WHERE b = 'b0';"
                "UPDATE lab.composite{n} SET v = 'new' WHERE a = 12"
            ),
            (
                "BEGIN; UPDATE lab.composite{n} SET b = 'c' WHERE a = 1;"
                "UPDATE lab.composite{n} SET a = 2, v = 'both' WHERE b = 'c'; COMMIT"
            ),
        ),
    ),
    Own(
        name="deferrable_key",
        tables=("deferred{n}",),
        made="CREATE TABLE lab.deferred{n} (id int PRIMARY KEY DEFERRABLE INITIALLY DEFERRED,"
        " v text, big text);"
        "ALTER TABLE lab.deferred{n} ALTER big SET STORAGE EXTERNAL, REPLICA IDENTITY FULL;"
        "INSERT INTO lab.deferred{n} SELECT i, 'v' || i, repeat('x' || i, 3000) "
        "FROM generate_series(1, 6) i",
        steps=(
            "UPDATE lab.deferred{n} SET id = 7 - id",
            (
                "BEGIN; INSERT INTO lab.deferred{n} VALUES (1, 'double', NULL);"
                "DELETE FROM lab.deferred{n} WHERE id = 1 AND v <> 'double'; COMMIT"
            ),
        ),
    ),
    Own(
        name="generated_and_identity_columns",
        tables=("made{n}",),
        made="CREATE TABLE lab.made{n} (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, a int,"
        " later int GENERATED BY DEFAULT AS IDENTITY, v text DEFAULT 'by default');"
        "INSERT INTO lab.made{n} (a) VALUES (1), (2)",
        steps=("INSERT INTO lab.made{n} (a) VALUES (3); UPDATE lab.made{n} SET a = -a",),
    ),
    Own(
        name="partitions",
        tables=("part_low{n}", "part_high{n}", "part_late{n}"),
        made="CREATE TABLE lab.part{n} (id int PRIMARY KEY, v text) PARTITION BY RANGE (id);"
        "CREATE TABLE lab.part_low{n} PARTITION OF lab.part{n} FOR VALUES FROM (0) TO (100);"
        "CREATE TABLE lab.part_high{n} PARTITION OF lab.part{n} FOR VALUES FROM (100) TO (200);"
        "CREATE TABLE lab.part_late{n} (id int PRIMARY KEY, v text);"
        "INSERT INTO lab.part_late{n} SELECT i, 'late' FROM generate_series(200, 220) i;"
        "INSERT INTO lab.part{n} SELECT i, 'old' FROM generate_series(90, 110) i",
        steps=(
            (
                "UPDATE lab.part{n} SET id = id + 40 WHERE id BETWEEN 90 AND 94;"
                "INSERT INTO lab.part{n} VALUES (1, 'new'), (199, 'new')"
            ),
            (
                "ALTER TABLE lab.part{n} ATTACH PARTITION lab.part_late{n} "
                "FOR VALUES FROM (200) TO (300); UPDATE lab.part{n} SET id = 250 WHERE id = 1;"
                "TRUNCATE lab.part_high{n}"
            ),
            (
                "ALTER TABLE lab.part{n} DETACH PARTITION lab.part_low{n};"
                "INSERT INTO lab.part_low{n} VALUES (1000, 'alone'); DELETE FROM lab.part{n} "
                "WHERE id = 205"
            ),
        ),
    ),
    Own(
        name="child_of_another_table",
        tables=("child{n}",),
        made="CREATE SCHEMA IF NOT EXISTS elsewhere;"
        "CREATE TABLE elsewhere.parent{n} (id int PRIMARY KEY, v text);"
        "CREATE TABLE lab.child{n} (PRIMARY KEY (id), more int) INHERITS (elsewhere.parent{n});"
        "INSERT INTO elsewhere.parent{n} VALUES (1, 'parent');"
        "INSERT INTO lab.child{n} VALUES (2, 'child', 2)",
        steps=(
            (
                "UPDATE elsewhere.parent{n} SET v = 'through the parent';"
                "INSERT INTO lab.child{n} VALUES (3, 'child', 3)"
            ),
        ),
    ),
    Own(
        name="names_that_need_quotes",
        tables=("Upper-Case{n}",),
        made='CREATE TABLE lab."Upper-Case{n}" ("select" int PRIMARY KEY, "two words" text, '
        '"qu""ote" text, "dot.ted" text, "back`tick" text, "größe" text, "{long}" text);'
        "INSERT INTO lab.\"Upper-Case{n}\" VALUES (1, 'a', 'b', 'c', 'd', 'e', 'f')",
        steps=(
            (
                'UPDATE lab."Upper-Case{n}" SET "two words" = \'A\', "dot.ted" = NULL;'
                "INSERT INTO lab.\"Upper-Case{n}\" VALUES (2, 'g', 'h', 'i', 'j', 'k', 'l')"
            ),
            'UPDATE lab."Upper-Case{n}" SET "select" = 3, "größe" = \'ß\' WHERE "select" = 1',
        ),
    ),
    Own(
        name="three_hundred_columns",
        tables=("wide{n}",),
        made="CREATE TABLE lab.wide{n} (id int PRIMARY KEY, {wide});"
        "INSERT INTO lab.wide{n} (id, c7) VALUES (1, 7)",
        steps=(
            (
                "UPDATE lab.wide{n} SET c299 = 1, c1 = 2;"
                "INSERT INTO lab.wide{n} (id, c150) VALUES (2, 150)"
            ),
        ),
    ),
    Own(
        name="no_rows_at_all",
        tables=("nothing{n}",),
        made="CREATE TABLE lab.nothing{n} (id int PRIMARY KEY)",
        steps=("BEGIN; INSERT INTO lab.nothing{n} VALUES (1); DELETE FROM lab.nothing{n}; COMMIT",),
    ),
    Own(
        name="a_row_of_twenty_megabytes",
        tables=("heavy{n}",),
        made="CREATE TABLE lab.heavy{n} (id int PRIMARY KEY, v int, big text)",
        steps=(
            "INSERT INTO lab.heavy{n} SELECT 1, 1, repeat(md5('1'), 20 * 32768)",
            "UPDATE lab.heavy{n} SET v = 2",
        ),
    ),
    Own(
        name="a_transaction_of_many_rows",
        tables=("many{n}",),
        made="CREATE TABLE lab.many{n} (id int PRIMARY KEY, v int)",
        steps=(
            (
                "BEGIN; INSERT INTO lab.many{n} SELECT i, i FROM generate_series(1, 20000) i;"
                "UPDATE lab.many{n} SET v = v + 1; DELETE FROM lab.many{n} WHERE id % 2 = 0; COMMIT"
            ),
        ),
    ),
)


def own_sql() -> str:
    """Return the statements that create the tables of all these scenarios."""
    return ";\n".join(_filled(own.made, way) for own in OWN for way in (0, 1))


def own_script(own: Own, step: int, way: int) -> str:
    """Return the step's statements; empty if there is no such step."""
    return _filled(own.steps[step], way) if step < len(own.steps) else ""


def own_tables(own: Own, way: int) -> list[str]:
    """Return the names of the scenario's tables for one of its two runs."""
    return [_filled(table, way) for table in own.tables]


def _filled(text: str, way: int) -> str:
    wide = ", ".join(f"c{i} int" for i in range(300))
    return text.format(n=way, wide=wide, long="x" * 63)
