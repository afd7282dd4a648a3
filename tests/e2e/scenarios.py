"""Scenarios of what may happen to rows of a table: statements for the source and their keys.

Every scenario has a hundred keys of its own, ``{k}`` the first of them, in each table it is run
on (``{t}``), and begins with six rows, from before the snapshot, whose large values lie apart.
"""

from dataclasses import dataclass
from typing import Final

KEYS: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A scenario; ``steps`` are scripts, one transaction per statement outside of BEGIN."""

    name: str
    steps: tuple[str, ...]


_SWAP: Final = (
    "BEGIN; UPDATE {t} SET id = {k} + 50 WHERE id = {k} + 1;"
    "UPDATE {t} SET id = {k} + 1 WHERE id = {k} + 2;"
    "UPDATE {t} SET id = {k} + 2 WHERE id = {k} + 50; COMMIT"
)
_NEW: Final = (
    "INSERT INTO {t} SELECT {k} + %d, 'new', repeat('n', 9000), decode(repeat('ab', 9000), 'hex'),"
    " to_jsonb(repeat('j', 9000)), array_fill('a'::text, '{{3000}}'), array_fill(7, '{{3000}}'),"
    " hstore('k', repeat('h', 9000))"
)

SCENARIOS: Final = (
    Scenario(name="key_changes", steps=("UPDATE {t} SET id = {k} + 51 WHERE id = {k} + 1",)),
    Scenario(
        name="key_and_values_change",
        steps=(
            "UPDATE {t} SET id = {k} + 51, v = 'new', big = 'short' WHERE id = {k} + 1",
            "UPDATE {t} SET id = {k} + 52, doc = NULL, nums = '{{1,NULL}}' WHERE id = {k} + 51",
        ),
    ),
    Scenario(name="keys_swap", steps=(_SWAP, _SWAP + ";" + _SWAP)),
    Scenario(
        name="keys_in_a_chain",
        steps=(
            (
                "BEGIN; UPDATE {t} SET id = {k} + 53 WHERE id = {k} + 3;"
                "UPDATE {t} SET id = {k} + 3 WHERE id = {k} + 2;"
                "UPDATE {t} SET id = {k} + 2 WHERE id = {k} + 1; COMMIT"
            ),
            (
                "UPDATE {t} SET id = {k} + 54 WHERE id = {k} + 53;"
                "UPDATE {t} SET id = {k} + 55 WHERE id = {k} + 54"
            ),
        ),
    ),
    Scenario(
        name="all_keys_shift",
        steps=(
            "UPDATE {t} SET id = id + 10 WHERE id BETWEEN {k} + 1 AND {k} + 6",
            "UPDATE {t} SET id = id - 10, v = 'back' WHERE id BETWEEN {k} + 11 AND {k} + 16",
        ),
    ),
    Scenario(
        name="key_changes_and_back",
        steps=(
            (
                "BEGIN; UPDATE {t} SET id = {k} + 51 WHERE id = {k} + 1;"
                "UPDATE {t} SET v = 'away' WHERE id = {k} + 51;"
                "UPDATE {t} SET id = {k} + 1 WHERE id = {k} + 51; COMMIT"
            ),
            "UPDATE {t} SET v = 'home' WHERE id = {k} + 1",
        ),
    ),
    Scenario(
        name="key_moves_onto_one_that_is_deleted",
        steps=(
            (
                "BEGIN; DELETE FROM {t} WHERE id = {k} + 2;"
                "UPDATE {t} SET id = {k} + 2 WHERE id = {k} + 1; COMMIT"
            ),
            "DELETE FROM {t} WHERE id = {k} + 3; UPDATE {t} SET id = {k} + 3 WHERE id = {k} + 2",
        ),
    ),
    Scenario(
        name="deleted_and_inserted_again",
        steps=(
            "BEGIN; DELETE FROM {t} WHERE id = {k} + 1;" + _NEW % 1 + "; COMMIT",
            "DELETE FROM {t} WHERE id = {k} + 2",
            "INSERT INTO {t} (id, v) VALUES ({k} + 2, 'again')",
        ),
    ),
    Scenario(
        name="inserted_updated_deleted",
        steps=(
            "BEGIN; " + _NEW % 20 + "; UPDATE {t} SET v = 'x' WHERE id = {k} + 20;"
            "DELETE FROM {t} WHERE id = {k} + 20; COMMIT",
            _NEW % 21 + "; UPDATE {t} SET v = 'y' WHERE id = {k} + 21;"
            "DELETE FROM {t} WHERE id = {k} + 21",
            "BEGIN; " + _NEW % 22 + "; DELETE FROM {t} WHERE id = {k} + 22;"
            "INSERT INTO {t} (id, v) VALUES ({k} + 22, 'stays'); COMMIT",
        ),
    ),
    Scenario(
        name="large_values_stay",
        steps=(
            (
                "UPDATE {t} SET v = 'a' WHERE id <= {k} + 6 AND id > {k};"
                "UPDATE {t} SET v = 'b' WHERE id <= {k} + 6 AND id > {k}"
            ),
            (
                "UPDATE {t} SET big = repeat('c', 9000) WHERE id = {k} + 1;"
                "UPDATE {t} SET v = 'c' WHERE id = {k} + 1;"
                "UPDATE {t} SET bin = 'now short' WHERE id = {k} + 1"
            ),
            "UPDATE {t} SET v = 'd' WHERE id = {k} + 1",
        ),
    ),
    Scenario(
        name="large_values_stay_after_an_insert",
        steps=(
            _NEW % 20 + "; UPDATE {t} SET v = 'x' WHERE id = {k} + 20",
            (
                "UPDATE {t} SET v = 'y' WHERE id = {k} + 20; UPDATE {t} SET id = {k} + 23, v = 'z' "
                "WHERE id = {k} + 20"
            ),
        ),
    ),
    Scenario(
        name="large_values_become_null",
        steps=(
            (
                "UPDATE {t} SET big = NULL, tags = NULL, props = NULL WHERE id = {k} + 1;"
                "UPDATE {t} SET v = 'x' WHERE id = {k} + 1"
            ),
            "UPDATE {t} SET v = 'y' WHERE id = {k} + 1",
        ),
    ),
    Scenario(
        name="value_that_looks_like_a_placeholder",
        steps=(
            (
                "INSERT INTO {t} (id, v, big) VALUES ({k} + 20, '__debezium_unavailable_value', "
                "'__debezium_unavailable_value');"
                "UPDATE {t} SET v = '__debezium_unavailable_value' WHERE id = {k} + 1"
            ),
            "UPDATE {t} SET big = '__debezium_unavailable_value' WHERE id = {k} + 1",
        ),
    ),
    Scenario(
        name="rolled_back",
        steps=(
            (
                "BEGIN; UPDATE {t} SET v = 'never' WHERE id = {k} + 1; ROLLBACK;"
                "BEGIN; UPDATE {t} SET v = 'kept' WHERE id = {k} + 2; SAVEPOINT s;"
                "UPDATE {t} SET id = {k} + 52 WHERE id = {k} + 2; ROLLBACK TO s;"
                "UPDATE {t} SET v = 'kept too' WHERE id = {k} + 3; COMMIT"
            ),
        ),
    ),
)

KEYED_TABLES: Final = ("by_default", "by_full", "by_index")
"""The replica identities, each for a table of the same structure."""

_KEYED: Final = """
CREATE TABLE lab.{t} (id int PRIMARY KEY, v text, big text, bin bytea, doc jsonb, tags text[],
                      nums int[], props hstore);
ALTER TABLE lab.{t} ALTER big SET STORAGE EXTERNAL, ALTER bin SET STORAGE EXTERNAL,
  ALTER doc SET STORAGE EXTERNAL, ALTER tags SET STORAGE EXTERNAL, ALTER nums SET STORAGE EXTERNAL,
  ALTER props SET STORAGE EXTERNAL;
"""
_ROWS: Final = """
INSERT INTO lab.{t} SELECT k + r, 'old', repeat(k + r || ' ', 2000),
  decode(repeat(md5((k + r)::text), 200), 'hex'), to_jsonb(repeat(k + r || ' ', 2000)),
  array_fill((k + r)::text, '{{3000}}'), array_fill(k + r, '{{3000}}'),
  hstore('k', repeat(k + r || ' ', 2000))
FROM generate_series({first}, {last}, {step}) k, generate_series(1, 6) r;
"""


def first_key(scenario: Scenario, way: int) -> int:
    """Return the first of the scenario's hundred keys; ``way`` 0 and 1 are independent runs."""
    return (1 + 2 * SCENARIOS.index(scenario) + way) * KEYS


def keyed_sql() -> str:
    """Return SQL for ``KEYED_TABLES`` with their rows from before the snapshot."""
    last = 2 * len(SCENARIOS) * KEYS
    made = "".join(
        _KEYED.format(t=table) + _ROWS.format(t=table, first=KEYS, last=last, step=KEYS)
        for table in KEYED_TABLES
    )
    return f"""
CREATE EXTENSION IF NOT EXISTS hstore;
CREATE SCHEMA lab;
{made}
ALTER TABLE lab.by_full REPLICA IDENTITY FULL;
CREATE UNIQUE INDEX by_index_too ON lab.by_index (id);
ALTER TABLE lab.by_index REPLICA IDENTITY USING INDEX by_index_too;
"""


def script(scenario: Scenario, step: int, table: str, way: int) -> str:
    """Return the step's statements; empty if there is no such step."""
    if step >= len(scenario.steps):
        return ""
    return scenario.steps[step].format(t=f"lab.{table}", k=first_key(scenario, way))


def last_step() -> int:
    """Return the number of steps of the longest scenario."""
    return max(len(scenario.steps) for scenario in SCENARIOS)
