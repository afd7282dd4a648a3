"""An admission waits in a file until it is done; no other file is taken for one."""

import json
from pathlib import Path

import pytest

from cdc.state.admissions import admission_now, admissions
from cdc.tables import TableId

ODD, OTHER = TableId("a/b", "..\nc"), TableId("a", "b")


def test_an_admission_waits_until_it_is_done(tmp_path: Path) -> None:
    waiting = admissions(tmp_path)
    first = admission_now(ODD, "id = 1", "a clock", 7)
    second = admission_now(ODD, "id = 2", "a clock", 7)
    waiting.ask(first)
    waiting.ask(first)
    waiting.ask(second)

    found = waiting.of(ODD)
    assert sorted(one.id for one in found) == sorted([first.id, second.id])
    assert (first in found, waiting.of(OTHER)) == (True, [])
    waiting.done(first)
    waiting.done(first)
    assert waiting.of(ODD) == [second]


@pytest.mark.parametrize("wrong", ["no JSON", "[]", "{}", '{"cut": 1}'])
def test_what_is_no_admission_is_ignored(tmp_path: Path, wrong: str) -> None:
    waiting, asked = admissions(tmp_path), admission_now(ODD, "id = 1", "a clock", 7)
    waiting.ask(asked)
    (file,) = tmp_path.rglob("*.json")
    (file.parent / "other.json").write_text(wrong)
    (file.parent / "twin.json").write_text(file.read_text())
    changed = json.loads(file.read_text()) | {"cut": "7", "id": "text"}
    (file.parent / "text.json").write_text(json.dumps(changed))

    assert waiting.of(ODD) == [asked]
