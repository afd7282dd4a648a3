"""Starts, stops, tests and lists the container stack: ``python -m tools.stack up`` and others."""

import os
import secrets
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from cdc.errors import CdcError
from tools.images import engine
from tools.images.compose import compose
from tools.images.contents import OURS, write_contents
from tools.images.stand_ins import provide

ROOT: Final = Path(__file__).resolve().parent.parent
PASSWORD: Final = "POSTGRES_PASSWORD"  # noqa: S105 - the name of a variable


def up(arguments: Sequence[str]) -> int:
    """Have an engine and the base images, and start the stack; return once it is healthy."""
    if not engine.answers():
        engine.start()
    provide(say)
    _have_password(ROOT / ".env")
    return compose("--project-directory", str(ROOT), "up", "--build", "--wait", *arguments)


def down(arguments: Sequence[str]) -> int:
    """Stop the stack, and the engine if ``up`` has started it; volumes stay."""
    code = 0
    if engine.answers():
        every = {"COMPOSE_PROFILES": "*"}  # also what another call has started
        code = compose("--project-directory", str(ROOT), "down", *arguments, environment=every)
    engine.stop()
    return code


def test(arguments: Sequence[str]) -> int:
    """Run the tests of the stack; say in one line why they cannot run here."""
    if (why := engine.why_none()) is not None:
        say(f"the container stack is not tested: {why}")
        return 0
    with engine.running():
        provide(say)
        command = [sys.executable, "-m", "pytest", "-m", "stack", "tests/containers", *arguments]
        return subprocess.run(command, cwd=ROOT, check=False).returncode


def sbom(_arguments: Sequence[str]) -> int:
    """Build our images, and write what is in each of them."""
    with engine.running():
        provide(say)
        unused = {PASSWORD: "unused"}
        code = compose("--project-directory", str(ROOT), "build", environment=unused)
        for image in () if code else OURS:
            file = ROOT / ".wal2lake" / "sbom" / f"{image.partition(':')[0]}.cdx.json"
            kinds = write_contents(image, file).kinds
            counts = ", ".join(f"{len(names)} {kind}" for kind, names in sorted(kinds.items()))
            say(f"{file.relative_to(ROOT)}: {counts}")
    return code


def _have_password(file: Path) -> None:
    """Write a password for Postgres, unless there is one in the environment or the file."""
    written = file.read_text() if file.exists() else ""
    if PASSWORD in os.environ or f"{PASSWORD}=" in written:
        return
    file.touch(mode=0o600)
    with file.open("a") as lines:
        lines.write(f"{PASSWORD}={secrets.token_urlsafe(24)}\n")


def say(what: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


COMMANDS: Final[dict[str, Callable[[Sequence[str]], int]]] = {
    "up": up,
    "down": down,
    "test": test,
    "sbom": sbom,
}


def main() -> int:
    """Run the command that is named."""
    name, *arguments = sys.argv[1:] or [""]
    if name not in COMMANDS:
        say(f"error: {name or 'nothing'} is no command; one of {', '.join(COMMANDS)} is needed")
        return 2
    try:
        return COMMANDS[name](arguments)
    except CdcError as error:
        say(f"error: {error}")
        return error.policy.exit_code


if __name__ == "__main__":
    sys.exit(main())
