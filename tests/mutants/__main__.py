"""Take out each rule, or plant a bug, in a copy of the tree and run the tests that should notice.

    python -m tests.mutants [WORD]     those whose name holds the word; all without one

Prints the test that went red first and why it did: a test may be red for a reason of its own,
and only a reader can tell. Ends with 1 if for some mutant none was.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Container
from pathlib import Path

from tests.mutants.mutant import Mutant
from tests.mutants.mutants import MUTANTS
from tests.mutants.planted import PLANTED

ROOT = Path(__file__).resolve().parents[2]
ASIDE = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info")
OF_THE_TEXT = "tests/unit/harness/test_mutants.py"  # red for every mutant, whatever it does
SECONDS = 2400
WIDE = os.environ | {"COLUMNS": "400"}  # pytest cuts an error short where the terminal ends
_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S.*)$", re.MULTILINE)


def mutated(mutant: Mutant, text: str) -> str:
    """The file's text without the rule. Raises ValueError where the rule does not stand there."""
    if text.count(mutant.old) != 1:
        raise ValueError(f"{mutant.file} does not say once: {mutant.old}")
    return text.replace(mutant.old, mutant.new)


def red(mutant: Mutant, copy: Path) -> list[str]:
    """The first test that fails without the rule and its error, if one does.

    Raises RuntimeError where the installation fails, or pytest crashes.
    """
    file = copy / mutant.file
    before = file.read_text()
    file.write_text(mutated(mutant, before))
    try:
        _run(copy, "cdc.stack.artifacts")  # as make does before tests: the lock may be what changed
        options = ["-q", "--tb=no", "-p", "no:cacheprovider", "-x", f"--ignore={OF_THE_TEXT}"]
        done = _run(copy, "pytest", *options, *mutant.tests, codes={0, 1})
    finally:
        file.write_text(before)
    found = _FAILED.findall(done.stdout)
    if bool(found) != bool(done.returncode):
        raise RuntimeError(f"pytest ended with {done.returncode}: {done.stdout}{done.stderr}")
    return found


def _run(
    copy: Path, module: str, *arguments: str, codes: Container[int] = (0,)
) -> subprocess.CompletedProcess[str]:
    """As a module, so that the copy's packages are found before the installed ones."""
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
    survivors = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "tree"
        shutil.copytree(ROOT, copy, ignore=ASIDE)
        for mutant in (each for each in (*MUTANTS, *PLANTED) if word in each.name):
            found = red(mutant, copy)
            survivors += not found
            lines = [f"{mutant.name}: {'red' if found else 'SURVIVED'}", *found]
            sys.stdout.write("\n  ".join(lines) + "\n")
            sys.stdout.flush()
    return min(survivors, 1)


if __name__ == "__main__":
    sys.exit(main(" ".join(sys.argv[1:])))
