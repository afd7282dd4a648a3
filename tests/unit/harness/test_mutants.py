"""Every line of code that a mutant replaces is still where the mutant looks for it."""

from pathlib import Path

import pytest

from tests.mutants.__main__ import mutated
from tests.mutants.commits import COMMITS
from tests.mutants.derived import DERIVED
from tests.mutants.event_windows import EVENT_WINDOWS
from tests.mutants.masked import MASKED
from tests.mutants.mutant import Mutant
from tests.mutants.mutants import MUTANTS
from tests.mutants.objects import OBJECTS
from tests.mutants.planted import PLANTED
from tests.mutants.snapshots import SNAPSHOTS

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    "mutant",
    [*MUTANTS, *PLANTED, *COMMITS, *OBJECTS, *SNAPSHOTS, *MASKED, *DERIVED, *EVENT_WINDOWS],
    ids=lambda mutant: mutant.name,
)
def test_a_mutant_is_another_program(mutant: Mutant) -> None:
    text = (ROOT / mutant.file).read_text()

    assert mutated(mutant, text) != text
    if mutant.file.endswith(".py"):
        compile(mutated(mutant, text), mutant.file, "exec")
    tests = [test.partition("::")[0] for test in mutant.tests if not test.startswith("--")]
    assert tests
    assert all((ROOT / test).exists() for test in tests)
