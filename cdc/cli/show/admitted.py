"""Asks the job to admit late rows, and prints what became of it."""

import json
from dataclasses import asdict
from pathlib import Path

from cdc.cli.show.wait_line import wait_line
from cdc.client.derived.admit import admit as admit_of
from cdc.config import load


def admit(
    name: str, where: str, reason: str, timeout: float, config: Path, *, as_json: bool
) -> None:
    """Admit the late rows that meet a condition. Raises as ``cdc.client.derived.admit``."""
    with wait_line("asking the job") as tell:
        found = admit_of(load(config), name, where, reason, timeout=timeout, tell=tell)
    if as_json:
        print(json.dumps(asdict(found)))
    elif found.rows:
        print(f"{name}: {found.rows:,} late rows count from cut {found.cut} on")
    else:
        print(f"{name}: all {found.matching:,} late rows count already; nothing was changed")
