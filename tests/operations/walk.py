"""Commands with their output as a document shows them, run again and compared.

A line that begins with ``$`` is a command, with ``# exit N`` where it does not end with 0. The
lines behind it are of its output, in order; others may stand between them. Numbers, lines of
tables and spaces are not compared: they are this run's own.
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
    """Of the console block below the heading."""
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
    """What the command prints; ``psql -c`` is done without psql."""
    words = shlex.split(step.command)
    if words[0] == "psql":
        with installation.connect() as connection:
            done = connection.execute(words[2].encode())
            return f"{done.statusmessage}\n"
    return installation.run(*words[1:], expect=step.code)


def missing(step: Step, printed: str) -> list[str]:
    """Lines of the document that the output does not have, in their order."""
    left = iter([_told(line) for line in printed.splitlines()])
    return [line for line in step.output if not _found(_told(line), left)]


def _found(line: str, left: Iterator[str]) -> bool:
    return any(line == each for each in left)


def _told(line: str) -> str:
    return _OWN.sub(" ", line).strip()
