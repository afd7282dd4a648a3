"""Remembers the configuration that the job runs with, so that a change can be detected.

Only digests are stored, keyed by a secret of the installation: a value may be a secret, and a plain
digest would confirm a guess of it.
"""

import hmac
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from cdc.config import Config
from cdc.state.atomic_file import write_private
from cdc.state.directory import StateDir, read_json

_SECRET: Final = "settings"  # noqa: S105 - the name of a file
_OF_NO_JOB: Final = ("kafka.delete_", "kafka.min_", "kafka.replication_")
"""Keys that matter only when topics are created, and not to a running job."""


def digests(config: Config, more: Mapping[str, str]) -> dict[str, str]:
    """Return a digest for each key (``job.merge_threads``) that matters to a running job.

    ``more`` are settings that other files have, such as the definitions of derived tables.

    They are comparable only with those remembered in the same state directory; empty if none
    have been remembered there yet.
    """
    secret = StateDir(config.state_dir).known_secret(_SECRET)
    return {} if secret is None else _digests(config, more, secret)


def _digests(config: Config, more: Mapping[str, str], secret: str) -> dict[str, str]:
    settings = [*_leaves("", config.model_dump(mode="python")), *more.items()]
    return {
        key: hmac.digest(secret.encode(), _text(value), "sha256").hex()
        for key, value in settings
        if not key.startswith(_OF_NO_JOB)
    }


def remember(config: Config, more: Mapping[str, str]) -> None:
    """Store the digests; the job does so when it starts with or has loaded a configuration."""
    secret = StateDir(config.state_dir).secret(_SECRET)
    text = json.dumps(_digests(config, more, secret), indent=1)
    write_private(_file(config.state_dir), text)


def remembered(state_dir: Path) -> dict[str, str]:
    """Return the digests that the job stored last; empty if it has stored none."""
    return {str(key): str(text) for key, text in (read_json(_file(state_dir)) or {}).items()}


def _leaves(prefix: str, values: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    for name, value in values.items():
        if not prefix and isinstance(value, dict):
            yield from _leaves(f"{name}.", value)
        else:
            yield f"{prefix}{name}", value


def _text(value: object) -> bytes:
    reveal = getattr(value, "get_secret_value", None)
    return repr(reveal() if reveal is not None else value).encode()


def _file(state_dir: Path) -> Path:
    return state_dir / "job.settings"
