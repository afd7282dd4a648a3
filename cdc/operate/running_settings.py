"""The keys of the configuration that the job runs with, remembered so that a change is seen.

Only digests are kept: a value may be a secret.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from cdc.config import Config
from cdc.stack.state import read_json, write_private

_OF_NO_JOB: Final = ("kafka.delete_", "kafka.min_", "kafka.replication_")
"""Of topics when they are created."""


def digests(config: Config) -> dict[str, str]:
    """Digest by key (``job.merge_threads``) of all that matters to a running job."""
    found = dict(_leaves("", config.model_dump(mode="python")))
    return {key: text for key, text in found.items() if not key.startswith(_OF_NO_JOB)}


def remember(config: Config) -> None:
    """The job's, when it begins with a configuration or has taken it over."""
    config.state_dir.mkdir(parents=True, exist_ok=True)
    write_private(_file(config.state_dir), json.dumps(digests(config), indent=1))


def remembered(state_dir: Path) -> dict[str, str]:
    """What the job said last; empty where it said nothing."""
    return {str(key): str(text) for key, text in (read_json(_file(state_dir)) or {}).items()}


def _leaves(prefix: str, values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        if not prefix and isinstance(value, dict):
            yield from _leaves(f"{name}.", value)
        else:
            yield f"{prefix}{name}", _digest(value)


def _digest(value: object) -> str:
    reveal = getattr(value, "get_secret_value", None)
    text = repr(reveal() if reveal is not None else value)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _file(state_dir: Path) -> Path:
    return state_dir / "job.settings"
