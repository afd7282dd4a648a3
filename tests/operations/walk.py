"""Run the commands of a document again and compare their output with what it shows.

A line that begins with ``$`` is a command, with ``# exit N`` if its exit code is not 0. The lines
after it must appear in its output in this order, maybe with others in between. Numbers, lines of
tables and spaces differ from run to run and are not compared.
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.e2e.installation import Installation

_EXIT: Final = re.compile(r"\s+# exit (\d+)$")
_OWN: Final = re.compile(r"[0-9][0-9,./A-F]*(?: min [0-9]+)?|[━─│┃┼╇]+|\s+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    command: str
    code: int
    output: tuple[str, ...]


def steps(document: Path, heading: str) -> list[Step]:
    """Return the steps of the console block below the heading."""
    text = document.read_text().partition(f"## {heading}\n")[2]
    block = text.partition("```console\n")[2].partition("```")[0]
    return [_step(part) for part in block.split("\n$ ") if part.strip()]


def _step(part: str) -> Step:
    first, _, rest = part.removeprefix("$ ").partition("\n")
    found = _EXIT.search(first)
    return Step(
        command=_EXIT.sub("", first),
        code=int(found[1]) if found else 0,
        output=tuple(line for line in rest.splitlines() if line.strip()),
    )


def run(installation: Installation, step: Step) -> str:
    """Run the command and return its output; ``psql -c`` runs without psql."""
    words = shlex.split(step.command)
    if words[0] == "psql":
        with installation.connect() as connection:
            done = connection.execute(words[2].encode())
            return f"{done.statusmessage}\n"
    return installation.run(*words[1:], expect=step.code)


def missing(step: Step, printed: str) -> list[str]:
    """Return the document's lines that the output lacks, or has in another order."""
    left = iter([_normalized(line) for line in printed.splitlines()])
    return [line for line in step.output if not _is_next(_normalized(line), left)]


def _is_next(line: str, left: Iterator[str]) -> bool:
    return any(line == other for other in left)


def _normalized(line: str) -> str:
    return _OWN.sub(" ", line).strip()
