"""``wal2lake rebuild --all`` has the job rebuild every table, one after the other."""

from typing import Annotated

import typer

from cdc.cli.options import DEFAULT_CONFIG, ConfigOption, JsonOption
from cdc.cli.replay import EventsFrom, FromOption
from cdc.cli.show.follow_operation import (
    DetachOption,
    NoJobTimeoutOption,
    ask_and_follow,
    new_operation,
)
from cdc.config import Config, load
from cdc.errors import CdcError, ErrorKind
from cdc.lake.layout import ledger_path
from cdc.lake.records.ledger import Ledger

AllOption = Annotated[
    bool,
    typer.Option(
        "--all", help="Rebuild every captured table; for a single table: wal2lake replay."
    ),
]


def rebuild(
    *,
    every: AllOption = False,
    whence: FromOption = EventsFrom.LOG,
    detach: DetachOption = False,
    timeout: NoJobTimeoutOption = None,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    """Replace each table in one commit, so that readers see either the old or the new table.

    Raises CONFIG without ``--all``, and when nothing is published yet.
    """
    loaded = load(config)
    if not every:
        raise CdcError(
            ErrorKind.CONFIG,
            "rebuild replaces every table, so it needs --all",
            remedy="run wal2lake rebuild --all; for one table: wal2lake replay TABLE",
        )
    operation = new_operation("rebuild", _published_tables(loaded), {"from": whence.value})
    ask_and_follow(loaded, operation, as_json=as_json, detach=detach, timeout=timeout)


def _published_tables(config: Config) -> list[str]:
    last = Ledger(ledger_path(config)).last()
    if last is None:
        raise CdcError(
            ErrorKind.CONFIG,
            "nothing is published yet, so nothing can be rebuilt",
            remedy="wait for the first cut; wal2lake status shows the progress",
        )
    return [entry.table for entry in last.tables]
