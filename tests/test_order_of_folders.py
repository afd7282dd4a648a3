"""No import points up in the order of the folders under ``cdc``, and none forms a circle.

Read from the top, ``FLOORS`` follows a change and then what is built on it; a folder may import the
folders above it in the list. ``docs/architecture.md`` says what each is for.
"""

import ast
from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from tests.test_layers import ROOT, imports, modules

FLOORS = (
    ("errors", "tables", "config", "failpoints", "http_client", "waiting"),
    ("observe",),
    ("events",),
    ("state", "kafka"),
    ("lake", "source", "stack"),
    ("capture",),
    ("land",),
    ("apply",),
    ("derive",),
    ("client",),
    ("operations", "reader"),
    ("job",),
    ("cli", "demo"),
    ("__main__",),
)
MOST_FILES = 20
"""In one folder, so that a reader can see at a glance what is there."""
RE_EXPORT = frozenset({"cdc.config"})
"""Folders whose ``__init__.py`` offers the names of its files; it counts as one of them."""


def edges() -> dict[str, set[str]]:
    """Return our modules that each module imports, without the folders that contain either."""
    known = modules()
    return {
        name: {found for found in imports(path.read_text()) if is_file(found, known)} - {name}
        for name, path in known.items()
        if name.startswith("cdc.") and is_file(name, known)
    }


def is_file(name: str, known: Mapping[str, Path]) -> bool:
    return name in known and (name in RE_EXPORT or known[name].name != "__init__.py")


def floor(name: str) -> int:
    folder = name.split(".")[1]
    return next(i for i, folders in enumerate(FLOORS) if folder in folders)


def upward(graph: Mapping[str, Iterable[str]]) -> list[str]:
    return [
        f"{name} > {used}"
        for name, others in graph.items()
        for used in others
        if floor(used) > floor(name)
    ]


def circle(graph: Mapping[str, Iterable[str]]) -> list[str]:
    """Return a circle of modules or folders that import each other; empty if there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def by_folder(graph: Mapping[str, Iterable[str]], depth: int) -> dict[str, set[str]]:
    """Return the imports between folders at a depth: 2 for ``cdc.lake``, 3 for ``cdc.lake.table``.

    A module at a smaller depth counts as a folder of its own; it may be below the folders beside it
    or above them, but not both.
    """
    found: dict[str, set[str]] = {}
    for name, others in graph.items():
        own = _at(name, depth)
        found.setdefault(own, set()).update({_at(used, depth) for used in others} - {own})
    return found


def _at(name: str, depth: int) -> str:
    parts = name.split(".")
    return ".".join(parts[: min(depth, len(parts) - 1)]) if len(parts) > 2 else name


def test_no_import_points_up() -> None:
    assert upward(edges()) == []


def test_no_import_goes_in_a_circle_between_modules() -> None:
    assert circle(edges()) == []


def test_folders_of_one_floor_do_not_go_in_a_circle() -> None:
    assert circle(by_folder(edges(), 2)) == []


def test_folders_within_a_folder_do_not_go_in_a_circle() -> None:
    within = {
        name: {used for used in others if used.count(".") == 3}
        for name, others in edges().items()
        if name.count(".") == 3
    }

    assert circle(by_folder(within, 3)) == []


def test_every_module_has_a_floor() -> None:
    named = {name for folders in FLOORS for name in folders}
    there = {name.split(".")[1] for name in edges()}

    assert named == there


def rooms() -> dict[str, int]:
    found: dict[str, int] = {}
    for folder in ("bench", "cdc", "jobs", "tests"):
        for path in (ROOT / folder).rglob("*.py"):
            room = str(path.parent.relative_to(ROOT))
            found[room] = found.get(room, 0) + (path.name != "__init__.py")
    return found


def test_no_room_has_more_files_than_a_reader_sees_at_a_glance() -> None:
    assert {room: files for room, files in rooms().items() if files > MOST_FILES} == {}


def test_a_folder_holds_no_code_of_its_own() -> None:
    """Importing one of its files runs nothing else; three have reasons."""
    code = [
        name
        for name, path in modules().items()
        if path.name == "__init__.py"
        and name not in {"cdc", "cdc.cli"} | RE_EXPORT
        and any(not isinstance(node, ast.Expr) for node in ast.parse(path.read_text()).body)
    ]

    assert code == []


@pytest.mark.parametrize(
    ("graph", "offence"),
    [
        ({"cdc.events.fold": ["cdc.source.slot"]}, "cdc.events.fold > cdc.source.slot"),
        ({"cdc.job.main": ["cdc.cli.up"]}, "cdc.job.main > cdc.cli.up"),
    ],
)
def test_the_check_sees_an_import_that_points_up(graph: dict[str, list[str]], offence: str) -> None:
    assert upward(graph) == [offence]


def test_the_check_sees_a_circle_of_folders_whose_modules_have_none() -> None:
    graph = {"cdc.lake.a.x": {"cdc.lake.b.x"}, "cdc.lake.b.y": {"cdc.lake.a.y"}}

    assert not circle(graph)
    assert circle(by_folder(graph, 3))
