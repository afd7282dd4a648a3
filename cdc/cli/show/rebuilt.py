"""``derived rebuild --into`` builds a table, and says in two lines or JSON how it compares."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import typer

from cdc.cli.show.derived_tables import plain_value
from cdc.cli.show.wait_line import wait_line
from cdc.client.derived.likeness import Likeness
from cdc.client.derived.rebuild_into import Rebuilt, rebuild_into
from cdc.config import Config
from cdc.errors import CdcError, ErrorKind


def build_into(
    config: Config, name: str, into: str | None, at: str | None, *, as_json: bool
) -> None:
    """Build the table in this process, and print what came out of it.

    Raises CONFIG without ``into``. Exits with 1 where the served table differs.
    """
    if into is None:
        raise CdcError(
            ErrorKind.CONFIG,
            "--at needs --into: the served table is at the newest cut",
            remedy="name another table with --into",
        )
    with wait_line("calculating") as tell:
        rebuilt = rebuild_into(config, name, into, at, say=tell)
    if as_json:
        print(json.dumps(rebuilt_facts(rebuilt), indent=2))
    else:
        print(*rebuilt_sentences(rebuilt), sep="\n")
    if rebuilt.likeness is not None and not rebuilt.likeness.equal:
        raise typer.Exit(1)


def rebuilt_facts(rebuilt: Rebuilt) -> dict[str, Any]:
    """Return it as an object for JSON; ``equal`` is None when nothing was compared."""
    facts, found = asdict(rebuilt), rebuilt.likeness
    del facts["likeness"]
    if found is None:
        return facts | {"equal": None}
    keys = [{name: plain_value(value) for name, value in key.items()} for key in found.keys]
    return facts | asdict(found) | {"keys": keys, "equal": found.equal}


def rebuilt_sentences(rebuilt: Rebuilt) -> list[str]:
    """Return what was built, and how it compares with the served table."""
    at = f"{rebuilt.table} at cut {rebuilt.cut}"
    size = f"{rebuilt.rows:,} rows"
    built = f"{at}: {size}, {rebuilt.seconds:.1f} s; in {rebuilt.into} at {rebuilt.path}"
    if rebuilt.likeness is None:
        return [built, f"not compared: {rebuilt.not_compared}"]
    if rebuilt.likeness.equal:
        return [built, f"equal to {at}: {size}"]
    return [built, f"different from {at}: {_words(rebuilt.likeness)}"]


def _words(found: Likeness) -> str:
    if found.columns:
        return found.columns
    keys = ", ".join(map(_key, found.keys))
    return f"{found.missing:,} missing, {found.extra:,} extra; the first keys: {keys}"


def _key(key: Mapping[str, Any]) -> str:
    parts = (f"{name}={'NULL' if value is None else value}" for name, value in key.items())
    return f"({', '.join(parts)})"
