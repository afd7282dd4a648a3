"""Starts, stops, tests and lists the container stack: ``python -m tools.stack up`` and others."""

import argparse
import math
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Final

from cdc.errors import CdcError
from tools import dot_env
from tools.images import engine
from tools.images.compose import ROOT, build, compose
from tools.images.contents import OURS, write_contents
from tools.images.stand_ins import provide

_INTERRUPTED: Final = 2
"""What pytest returns if it is interrupted before a test fails (tests/conftest.py)."""
PARTS: Final = {"servers": "tests/servers"} | {
    file.stem.removeprefix("test_"): str(file.relative_to(ROOT))
    for file in sorted((ROOT / "tests" / "containers").glob("test_*.py"))
}
"""What is tested, in this order, by the names for ONLY of the Makefile."""
OF_STORE: Final = frozenset({"c_store"})
"""What is tested with the object store."""


def up(arguments: Sequence[str]) -> int:
    """Have an engine and the base images, and start the stack; return once it is healthy."""
    if not engine.answers():
        engine.start()
    provide(say, dot_env.prepare(ROOT / ".env", ROOT / "deploy" / "s3.env"))
    return compose("--project-directory", str(ROOT), "up", "--build", "--wait", *arguments)


def down(arguments: Sequence[str]) -> int:
    """Stop the stack, and the engine if ``up`` has started it; volumes stay."""
    code = 0
    if engine.answers():
        every = {dot_env.PROFILES: "*"}  # also what another call has started
        code = compose("--project-directory", str(ROOT), "down", *arguments, environment=every)
    engine.stop()
    return code


def test(arguments: Sequence[str]) -> int:
    """Run the tests of the stack; say in one line why they cannot run here, or not to the end."""
    began, options = time.monotonic(), argparse.ArgumentParser(prog="test")
    options.add_argument("--minutes", type=float, default=math.inf)
    options.add_argument("--only", choices=PARTS)
    known = options.parse_args(arguments)
    with ExitStack() as held:
        try:
            held.enter_context(engine.running())
        except CdcError as error:
            say(f"the container stack is not tested: {error}")
            return 0
        provide(say, [dot_env.STORE] if known.only in {None, *OF_STORE} else [])
        parts = [PARTS[known.only]] if known.only else PARTS.values()
        command = [sys.executable, "-m", "pytest", "--servers=container", *parts]
        if math.isinf(known.minutes):
            return subprocess.run(command, cwd=ROOT, check=False).returncode
        return run_for(began + 60 * known.minutes - time.monotonic(), *command, "--exitfirst")


def run_for(seconds: float, *command: str) -> int:
    """Run pytest for so long, and return its exit code; 0 if that is why it ended."""
    over = "the container stack is not tested to the end: its minutes are over"
    if seconds <= 0:
        say(over)
        return 0
    with subprocess.Popen(command, cwd=ROOT) as tests:
        try:
            return tests.wait(seconds)
        except subprocess.TimeoutExpired:
            tests.send_signal(signal.SIGTERM)  # they remove their containers
            code = tests.wait()
    say(over)
    return 0 if code == _INTERRUPTED else code


def sbom(_arguments: Sequence[str]) -> int:
    """Build our images, and write what is in each of them."""
    with engine.running():
        provide(say)
        build()
        for image in OURS:
            file = ROOT / ".wal2lake" / "sbom" / f"{image.partition(':')[0]}.cdx.json"
            kinds = write_contents(image, file).kinds
            counts = ", ".join(f"{len(names)} {kind}" for kind, names in sorted(kinds.items()))
            say(f"{file.relative_to(ROOT)}: {counts}")
    return 0


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
