"""Every rule that the mutants take out still stands where they look for it."""

from pathlib import Path

import pytest

from tests.mutants.__main__ import mutated
from tests.mutants.mutants import MUTANTS, Mutant

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_is_another_program(mutant: Mutant) -> None:
    text = (ROOT / mutant.file).read_text()

    assert mutated(mutant, text) != text
    compile(mutated(mutant, text), mutant.file, "exec")
    assert all((ROOT / test).exists() for test in mutant.tests)
