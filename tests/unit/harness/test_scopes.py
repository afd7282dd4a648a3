"""Tests that share servers stay on one worker, and the longest scopes begin first."""

from pathlib import Path

import pytest

from tests.scopes import LONGEST, place_of, scope_of

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("scope", LONGEST)
def test_a_scope_by_name_has_tests(scope: str) -> None:
    files = ROOT.glob("tests/**/test_*.py")
    scopes = [scope_of(f"{file.relative_to(ROOT).as_posix()}::test_it") for file in files]

    assert scope in scopes


@pytest.mark.parametrize(
    ("file", "scope"),
    [
        ("tests/e2e/test_a_main_job.py", "tests/e2e/"),
        ("tests/e2e/test_demo.py", "tests/e2e/test_demo.py"),
        ("tests/spark/lake/test_swap.py", "tests/spark/"),
        ("tests/client/quarantine/test_shown.py", "tests/client"),
        ("tests/test_docs.py", "tests/test_docs.py"),
    ],
)
def test_the_longest_name_that_fits_a_file_is_its_scope(file: str, scope: str) -> None:
    assert scope_of(f"{file}::test_it[a/b::c]") == scope


def test_what_is_not_listed_begins_last() -> None:
    assert place_of("tests/e2e/test_a_meaning.py::test_it") == 0
    assert place_of("tests/unit/test_reader.py::test_it") < place_of("tests/test_docs.py::test_it")
