"""``wal2lake rebuild --all``: every table made anew by the job, one after the other."""

from typing import Annotated

import typer

from cdc.cli.options import DEFAULT_CONFIG, ConfigOption, JsonOption
from cdc.cli.replay import FromOption, Marker
from cdc.cli.show.follow import DetachOption, NoJobTimeoutOption, ask_and_follow, new_operation
from cdc.config import load
from cdc.errors import CdcError, ErrorKind
from cdc.lake.layout import ledger_path
from cdc.lake.records.ledger import Ledger

AllOption = Annotated[
    bool, typer.Option("--all", help="Every captured table; wal2lake replay is for a single one.")
]


def rebuild(
    *,
    every: AllOption = False,
    whence: FromOption = Marker.LOG,
    detach: DetachOption = False,
    timeout: NoJobTimeoutOption = None,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    """Each is replaced in one commit; readers see the old one or the new one."""
    loaded = load(config)
    if not every:
        raise CdcError(
            ErrorKind.CONFIG,
            "rebuild makes every table anew, and --all is not given",
            remedy="wal2lake rebuild --all; for one table: wal2lake replay TABLE",
        )
    last = Ledger(ledger_path(loaded)).last()
    if last is None:
        raise CdcError(
            ErrorKind.CONFIG,
            "nothing is published yet, so nothing can be rebuilt",
            remedy="wait for the first cut: wal2lake status",
        )
    tables = [entry.table for entry in last.tables]
    operation = new_operation("rebuild", tables, {"from": whence.value})
    ask_and_follow(loaded, operation, as_json=as_json, detach=detach, timeout=timeout)
