"""``wal2lake up`` starts the job, the connector, and each server without a configured address."""

import json
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer
from rich.console import Console

from cdc import http_client
from cdc.cli.options import DEFAULT_CONFIG, ConfigOption, JsonOption
from cdc.config import READ_LOST, Config, load
from cdc.lake.layout import epochs_path
from cdc.stack import first_table
from cdc.stack.supervise import detached
from cdc.stack.supervise.supervisor import Establish, Say, Steps, supervise
from cdc.state.pipeline import Pipeline, resolve

DetachOption = Annotated[
    bool,
    typer.Option("--detach", "-d", help="Return once the job applies changes; stop it with down."),
]
NewEpochOption = Annotated[
    bool,
    typer.Option(
        "--new-epoch",
        help="Continue after the slot or the position was lost: every table must be read again.",
    ),
]
AwaitTablesOption = Annotated[
    bool,
    typer.Option(
        "--await-tables",
        help="Wait while no table matches source.tables, as in a database that is filled later.",
    ),
]
SuperviseOption = Annotated[bool, typer.Option("--supervise", hidden=True)]


def up(
    config: ConfigOption = DEFAULT_CONFIG,
    detach: DetachOption = False,
    as_json: JsonOption = False,
    *,
    new_epoch: NewEpochOption = False,
    await_tables: AwaitTablesOption = False,
    supervisor: SuperviseOption = False,
) -> None:
    """Run in the foreground until Ctrl-C, or with --detach in the background."""
    path, loaded = config.resolve(), load(config)
    console = Console(stderr=True, highlight=False)
    if not supervisor:  # a detached supervisor was started by a process that has checked already
        check_early = import_module("cdc.capture.early_checks").check_early
        check_early(loaded, await_tables=await_tables)
    if detach:
        with console.status("starting") as status:
            detached.up(
                loaded,
                path,
                lambda what: _progress(console, status, what),
                _passed_on(new_epoch=new_epoch, await_tables=await_tables),
            )
        _print_ready(resolve(loaded), as_json=as_json)
        return
    establish = partial(_establish, new_epoch=new_epoch, await_tables=await_tables)
    _stay(loaded, path, console, establish, as_json=as_json, quiet=supervisor)


def _passed_on(*, new_epoch: bool, await_tables: bool) -> list[str]:
    """Return the options that the supervisor in the background gets too."""
    return ["--new-epoch"] * new_epoch + ["--await-tables"] * await_tables


def _stay(
    config: Config,
    path: Path,
    console: Console,
    establish: Establish,
    *,
    as_json: bool,
    quiet: bool,
) -> None:
    def ready(pipeline: Pipeline) -> None:
        if not quiet:
            _print_ready(pipeline, as_json=as_json)
            console.print("Ctrl-C stops everything")

    supervise(
        config,
        Steps(
            establish=establish,
            is_at_source=_is_at_source,
            exclude_unreadable=_exclude_unreadable,
            job_config=path,
            on_progress=lambda what: console.print(what, markup=False, soft_wrap=True),
            on_ready=ready,
        ),
    )


def _progress(console: Console, status: Any, what: str) -> None:  # noqa: ANN401 - rich.status
    status.update(what)
    console.print(what, markup=False, soft_wrap=True)


def _establish(pipeline: Pipeline, say: Say, *, new_epoch: bool, await_tables: bool) -> None:
    first_table.await_tables(pipeline, say, also_configured=await_tables)
    # Imported late, so that the servers start before the source's client libraries are loaded.
    warning = import_module("cdc.source.connector.settings").clear_password(pipeline)
    if warning is not None:
        say(f"warning: {warning.subject} {warning.message}; {warning.remedy}")
    epochs, path = import_module("cdc.lake.records.epochs"), epochs_path(pipeline.config)
    before = epochs.last(path)
    import_module("cdc.capture.bootstrap").establish(pipeline, new_epoch=new_epoch, say=say)
    if new_epoch or epochs.last(path) != before:
        by_itself = pipeline.config.source.on_lost_changes == READ_LOST
        job_reads = "the job reads every table again"
        tables_wait = "every table waits for wal2lake resnapshot --all"
        say(f"a new epoch has begun; {job_reads if by_itself else tables_wait}")


def _is_at_source(pipeline: Pipeline) -> bool | None:
    at_source: bool | None = import_module("cdc.source.connector.sessions").is_at_source(
        pipeline.endpoints.source_url, pipeline.name
    )
    return at_source


def _exclude_unreadable(pipeline: Pipeline, at_an_event: bool) -> Sequence[object]:
    exclude_unreadable = import_module("cdc.capture.exclude_unreadable")
    exclude_unreadable.refuse_moved(pipeline)
    skipped: Sequence[object] = exclude_unreadable.exclude_unreadable(
        pipeline, at_an_event=at_an_event
    )
    return skipped


def _print_ready(pipeline: Pipeline, *, as_json: bool) -> None:
    endpoints = pipeline.endpoints
    facts = {
        "source": without_password(endpoints.source_url),
        "kafka": endpoints.kafka.bootstrap,
        "connect": http_client.without_login(endpoints.connect),
        "registry": http_client.without_login(endpoints.registry),
        "lake": pipeline.config.lake.path,
        "state_dir": str(pipeline.config.state_dir),
    }
    if as_json:
        print(json.dumps(facts), flush=True)
        return
    for name, value in facts.items():
        print(f"{name:10} {value}", flush=True)


def without_password(url: str) -> str:
    """Return the URL without password and parameters, which can hold one too (sslpassword)."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    user = parts.username
    return parts._replace(netloc=f"{user}@{host}" if user else host, query="").geturl()
