"""Test how a table is captured, by its identity; no server is needed."""

import pytest

from cdc.events.structure.declared import DeclaredType, source_column
from cdc.source.catalog.identity import ReplicaIdentity, mode_of
from cdc.source.server.finding import Level
from cdc.source.setup.preflight import FIRST_SOUND_MINOR, _version
from cdc.tables import TableMode


@pytest.mark.parametrize(
    ("identity", "append", "mode", "level"),
    [
        (("d", ("id",), ()), False, TableMode.KEYED, None),
        (("f", ("id",), ()), False, TableMode.KEYED, None),
        (("d", ("id",), ()), True, TableMode.KEYED, None),  # a key is always used
        (("i", (), ("a",)), False, TableMode.KEYED, None),
        (("i", ("id",), ("id", "a")), False, TableMode.KEYED, None),
        (("i", ("id",), ("a",)), False, TableMode.KEYED, Level.ERROR),
        (("f", (), ()), False, TableMode.MULTISET, None),
        (("f", (), ()), True, TableMode.APPEND, None),
        (("d", (), ()), True, TableMode.APPEND, Level.WARNING),
        (("d", (), ()), False, TableMode.KEYED, Level.ERROR),
        (("n", ("id",), ()), False, TableMode.KEYED, Level.ERROR),
        (("n", (), ()), True, TableMode.KEYED, Level.ERROR),
    ],
)
def test_mode(
    identity: tuple[str, tuple[str, ...], tuple[str, ...]],
    append: bool,
    mode: TableMode,
    level: Level | None,
) -> None:
    replica, primary, index = identity
    given = ReplicaIdentity(replica=replica, primary_key=primary, index=index)
    found, findings = mode_of("s.t", given, append=append)
    assert found is mode
    assert [finding.level for finding in findings] == ([level] if level else [])


@pytest.mark.parametrize(
    ("modifier", "expected"),
    [(-1, (None, None)), (655366, (10, 2)), (2490382, (38, 10)), (264194, (4, -2))],
)
def test_modifier_of_a_numeric(modifier: int, expected: tuple[int | None, int | None]) -> None:
    declared = DeclaredType(name="numeric", kind="b", modifier=modifier)
    pg = source_column("n", declared, not_null=False, generated=False).pg
    assert (pg.length, pg.scale) == expected


def test_versions() -> None:
    for major, minor in FIRST_SOUND_MINOR.items():
        assert _version(major * 10_000 + minor).level is Level.OK
        assert _version(major * 10_000 + minor - 1).level is Level.WARNING
    assert _version(130_022).level is Level.ERROR
    assert _version(180_000).level is Level.OK
