"""Remove a rule or plant a bug in a copy of the tree, and run the tests that should notice.

    python -m tests.mutants [WORD]     mutants whose name or file contains the word, or all

For each mutant it prints the first test that failed and its error, because only a reader can tell
whether the mutant is the reason. It exits with 1 if a mutant survived all tests.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Container
from pathlib import Path

from tests.mutants.applying import APPLYING
from tests.mutants.captured import CAPTURED
from tests.mutants.commits import COMMITS
from tests.mutants.derived.admitted import DERIVED_ADMITTED
from tests.mutants.derived.as_of import DERIVED_AS_OF
from tests.mutants.derived.changed_rows import CHANGED_ROWS
from tests.mutants.derived.event_windows import EVENT_WINDOWS
from tests.mutants.derived.folds import DERIVED_FOLDS
from tests.mutants.derived.histories import DERIVED_HISTORIES
from tests.mutants.derived.lanes import LANES
from tests.mutants.derived.late import DERIVED_LATE
from tests.mutants.derived.patterns import DERIVED_PATTERNS
from tests.mutants.derived.printed import DERIVED_PRINTED
from tests.mutants.derived.row_by_row import ROW_BY_ROW
from tests.mutants.derived.scoped import SCOPED
from tests.mutants.derived.tables import DERIVED
from tests.mutants.derived.time import DERIVED_TIME
from tests.mutants.derived.writes import DERIVED_WRITES
from tests.mutants.forgotten import FORGOTTEN
from tests.mutants.masked import MASKED
from tests.mutants.mutant import Mutant
from tests.mutants.objects import OBJECTS
from tests.mutants.planted import PLANTED
from tests.mutants.served import SERVED
from tests.mutants.snapshots import SNAPSHOTS
from tests.mutants.stored import STORED

ALL = (
    *CAPTURED,
    *APPLYING,
    *STORED,
    *SERVED,
    *PLANTED,
    *COMMITS,
    *OBJECTS,
    *SNAPSHOTS,
    *FORGOTTEN,
    *MASKED,
    *DERIVED,
    *DERIVED_ADMITTED,
    *DERIVED_AS_OF,
    *DERIVED_FOLDS,
    *DERIVED_HISTORIES,
    *DERIVED_LATE,
    *DERIVED_PATTERNS,
    *DERIVED_PRINTED,
    *DERIVED_TIME,
    *DERIVED_WRITES,
    *EVENT_WINDOWS,
    *CHANGED_ROWS,
    *LANES,
    *ROW_BY_ROW,
    *SCOPED,
)
ROOT = Path(__file__).resolve().parents[2]
ASIDE = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info")
TEXT_TEST = "tests/unit/harness/test_mutants.py"  # fails for every mutant
SECONDS = 2400
WIDE = os.environ | {"COLUMNS": "400"}  # pytest cuts errors to the terminal's width
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S.*)$", re.MULTILINE)


def mutated(mutant: Mutant, text: str) -> str:
    """Return the mutated text; raise ValueError unless it contains the old text exactly once."""
    if text.count(mutant.old) != 1:
        raise ValueError(f"{mutant.file} does not contain exactly once: {mutant.old}")
    return text.replace(mutant.old, mutant.new)


def red(mutant: Mutant, copy: Path) -> list[str]:
    """Return the first test that fails for the mutant, with its error; empty if none does.

    Raises RuntimeError if the installation fails or pytest crashes.
    """
    file = copy / mutant.file
    before = file.read_text()
    file.write_text(mutated(mutant, before))
    try:
        _run(copy, "cdc.stack.artifacts")  # as make does before tests: the mutant may change a lock
        options = ["-q", "--tb=no", "-p", "no:cacheprovider", "-x", f"--ignore={TEXT_TEST}"]
        done = _run(copy, "pytest", *options, *mutant.tests, codes={0, 1})
    finally:
        file.write_text(before)
    failures = _FAILED.findall(done.stdout)
    if bool(failures) != bool(done.returncode):
        raise RuntimeError(f"pytest ended with {done.returncode}: {done.stdout}{done.stderr}")
    return failures


def _run(
    copy: Path, module: str, *arguments: str, codes: Container[int] = (0,)
) -> subprocess.CompletedProcess[str]:
    """Run a module with ``python -m``, which prefers the copy's packages to installed ones."""
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(
        command,
        cwd=copy,
        env=WIDE,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    if done.returncode not in codes:
        raise RuntimeError(f"{module} ended with {done.returncode}: {done.stdout}{done.stderr}")
    return done


def main(word: str) -> int:
    """Try the mutants whose name or file contains the word; return 1 if one survived."""
    survivors = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "tree"
        shutil.copytree(ROOT, copy, ignore=ASIDE)
        for mutant in (one for one in ALL if word in one.name or word in one.file):
            failures = red(mutant, copy)
            survivors += not failures
            lines = [f"{mutant.name}: {'red' if failures else 'SURVIVED'}", *failures]
            sys.stdout.write("\n  ".join(lines) + "\n")
            sys.stdout.flush()
    return min(survivors, 1)


if __name__ == "__main__":
    sys.exit(main(" ".join(sys.argv[1:])))
