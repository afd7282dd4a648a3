"""``wal2lake sync``: a barrier between writing to the source and reading from the lake."""

import json
from typing import Annotated

import typer

from cdc.cli.options import DEFAULT_CONFIG, ConfigOption, JsonOption
from cdc.cli.show.waiting import waiting
from cdc.client.sync import sync as wait_until_synced
from cdc.config import load
from cdc.events.values.lsn import format_lsn
from cdc.state.endpoints import resolve

TimeoutOption = Annotated[
    float, typer.Option("--timeout", metavar="SECONDS", min=0, help="Exit code 7 after that long.")
]


def sync(
    timeout: TimeoutOption = 300,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    loaded = load(config)
    with waiting("asking the source where it is") as show:

        def tell(at: int | None, to: int) -> None:
            now = "nowhere yet" if at is None else f"at {format_lsn(at)}"
            show(f"waiting for {format_lsn(to)}; the lake is {now}")

        done = wait_until_synced(loaded, resolve(loaded), timeout=timeout, tell=tell)
    if as_json:
        print(json.dumps({"lsn": format_lsn(done.lsn), "cut": done.cut.cut}))
    else:
        print(f"in sync: cut {done.cut.cut} holds every commit up to {format_lsn(done.lsn)}")
