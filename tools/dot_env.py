"""The file .env, where every command of Compose finds passwords, profiles and other settings."""

import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Final

PASSWORD: Final = "POSTGRES_PASSWORD"  # noqa: S105 - the name of a variable
PROFILES: Final = "COMPOSE_PROFILES"
STORE: Final = "s3"
"""The profile with the stack's own object store."""


def prepare(file: Path, of_store: Path) -> set[str]:
    """Add the settings that a start needs and that are missing; return the profiles.

    ``of_store`` has those by which the lake is in the stack's own object store.
    """
    if PASSWORD not in os.environ:
        _add(file, {PASSWORD: secrets.token_urlsafe(24)})
    profiles = set((os.environ.get(PROFILES) or read(file).get(PROFILES, "")).split(","))
    if STORE in profiles:
        # Also the profile: without the store the lake would be gone at the next start.
        keys = {"AWS_ACCESS_KEY_ID": secrets.token_hex(10)}
        keys |= {"AWS_SECRET_ACCESS_KEY": secrets.token_urlsafe(30)}
        _add(file, read(of_store) | keys)
    return profiles


def read(file: Path) -> dict[str, str]:
    """Return the settings of a file by name; none if there is no file."""
    lines = file.read_text().splitlines() if file.exists() else []
    pairs = (line.partition("=") for line in lines if not line.startswith("#"))
    return {name: text for name, equals, text in pairs if equals}


def _add(file: Path, settings: Mapping[str, str]) -> None:
    """Write those of the settings that the file does not have."""
    there = read(file)
    file.touch(mode=0o600)
    with file.open("a") as lines:
        lines.writelines(f"{key}={settings[key]}\n" for key in settings if key not in there)
