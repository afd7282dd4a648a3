"""Runs Docker Compose of version 2, which the stack's file needs.

Debian 12 has version 1 only. There the plugin comes out of Debian 13's package, which needs nothing
but libc.
"""

import os
import shutil
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

from tools.dot_env import PASSWORD
from tools.images import debian
from tools.images.engine import home, run

ROOT: Final = Path(__file__).resolve().parents[2]
_PLUGIN: Final = "usr/libexec/docker/cli-plugins/docker-compose"
_UNPACK: Final = (
    "cd /tmp && apt-get -qq update && apt-get -qq download docker-compose"
    f" && dpkg-deb --extract docker-compose_*.deb x && cp x/{_PLUGIN} /out/docker-compose"
)


def compose(*arguments: str, environment: Mapping[str, str] | None = None) -> int:
    """Run ``docker compose`` in the foreground and return its exit code."""
    command = ["docker", "compose", *arguments]
    return subprocess.run(command, env=settings() | dict(environment or {}), check=False).returncode


def build(*services: str) -> None:
    """Build the images of these services, or all of ours, by what the engine has of them already.

    Raises SERVER_FAILED if one cannot be built.
    """
    environment = {"COMPOSE_FILE": str(ROOT / "docker-compose.yml"), PASSWORD: "unused"}
    run("docker", "compose", "build", "--quiet", *services, environment=settings() | environment)


@cache
def settings() -> dict[str, str]:
    """Return the environment in which ``docker compose`` is of version 2."""
    if _is_version_2(dict(os.environ)):
        return dict(os.environ)
    folder = home() / "client"
    plugin = folder / "cli-plugins" / "docker-compose"
    if not plugin.exists():
        _take_from_package(plugin)
    return {**os.environ, "DOCKER_CONFIG": str(folder)}


def _is_version_2(environment: dict[str, str]) -> bool:
    command = ["docker", "compose", "version", "--short"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return done.returncode == 0 and done.stdout.lstrip("v").startswith(("2.", "3.", "4.", "5."))


def _take_from_package(plugin: Path) -> None:
    plugin.parent.mkdir(parents=True, exist_ok=True)
    partial = home() / "plugin"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    image = debian.image_name("trixie")
    run("docker", "run", "--rm", "--volume", f"{partial}:/out", image, "sh", "-c", _UNPACK)
    (partial / "docker-compose").chmod(0o755)
    (partial / "docker-compose").rename(plugin)
