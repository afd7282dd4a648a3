"""``wal2lake sync`` is a barrier between writing to the source and reading from the lake."""

import json
from typing import Annotated

import typer

from cdc.cli.options import DEFAULT_CONFIG, ConfigOption, JsonOption
from cdc.cli.show.waiting import waiting
from cdc.client.sync import sync as wait_until_synced
from cdc.config import load
from cdc.events.values.lsn import format_lsn
from cdc.state.pipeline import resolve

TimeoutOption = Annotated[
    float,
    typer.Option(
        "--timeout", metavar="SECONDS", min=0, help="Give up with exit code 7 after this long."
    ),
]


def sync(
    timeout: TimeoutOption = 300,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    """Wait for a cut that holds every commit made so far, and print its number and LSN."""
    loaded = load(config)
    with waiting("reading the source's position") as show:

        def tell(at: int | None, to: int) -> None:
            now = "nothing is published yet" if at is None else f"the lake is at {format_lsn(at)}"
            show(f"waiting for {format_lsn(to)}; {now}")

        synced = wait_until_synced(resolve(loaded), timeout=timeout, tell=tell)
    if as_json:
        print(json.dumps({"lsn": format_lsn(synced.lsn), "cut": synced.cut.cut}))
    else:
        print(f"in sync: cut {synced.cut.cut} holds every commit up to {format_lsn(synced.lsn)}")
