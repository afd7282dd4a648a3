"""``wal2lake derived`` gathers the commands with which operators handle derived tables."""

import json
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console

from cdc.cli.options import DEFAULT_CONFIG, ConfigOption, JsonOption
from cdc.cli.show.admitted import admit
from cdc.cli.show.checked_definitions import checked_facts, show_checked
from cdc.cli.show.derived_tables import (
    listing,
    listing_facts,
    report_facts,
    show_rows,
    verdicts,
)
from cdc.cli.show.rebuilt import build_into
from cdc.cli.show.verified import Engine, by_source_now, by_spark
from cdc.cli.show.wait_line import wait_line
from cdc.client.derived.at_cut import definitions, one_of, published_row, timed_tables
from cdc.client.derived.at_cut import preview as preview_of
from cdc.client.derived.check import check as check_all
from cdc.client.derived.drop import drop as drop_of
from cdc.client.derived.explain import explain as explain_of
from cdc.client.derived.late import late_rows
from cdc.client.derived.rebuild import rebuild as rebuild_of
from cdc.client.derived.verify import verify_locally
from cdc.config import load
from cdc.errors import POLICY, CdcError, ErrorKind
from cdc.state.derived_requests import pauses
from cdc.state.pipeline import resolve
from cdc.tables import TableId

derived = typer.Typer(
    help="Check, explain, list, preview, verify, rebuild, pause and drop derived tables, and "
    "show or admit their late rows. "
    "Each command takes --config FILE and has its own --help: wal2lake derived check --help.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
NamesArgument = Annotated[
    list[str] | None, typer.Argument(metavar="[TABLE]...", help="schema.table; all without one.")
]
AtOption = Annotated[
    str | None,
    typer.Option("--at", metavar="CUT|LSN|TIME", help="The cut, by default the newest."),
]
IntoOption = Annotated[
    str | None,
    typer.Option("--into", metavar="TABLE", help="Build it here into this table, and compare."),
]
TimeoutOption = Annotated[
    float,
    typer.Option("--timeout", metavar="SECONDS", min=1, help="How long to wait for the cut."),
]


EngineOption = Annotated[
    Engine,
    typer.Option("--engine", help="What calculates here: DuckDB, or a Spark session of its own."),
]
NameArgument = Annotated[str, typer.Argument(metavar="TABLE", help="schema.table")]


@derived.command("check")
def check(config: ConfigOption = DEFAULT_CONFIG, as_json: JsonOption = False) -> None:
    """Check every definition; print the file, line and remedy of each problem; exit 2 with any."""
    checked = check_all(load(config))
    if as_json:
        print(json.dumps(checked_facts(checked), indent=2))
    else:
        show_checked(checked, Console(highlight=False))
    if checked.problems:
        raise typer.Exit(POLICY[ErrorKind.CONFIG].exit_code)


@derived.command("explain")
def explain(
    name: NameArgument, config: ConfigOption = DEFAULT_CONFIG, as_json: JsonOption = False
) -> None:
    """Say which rows a step calculates, how changes of the inputs reach them, and the cost."""
    found = explain_of(load(config), name)
    if as_json:
        print(json.dumps(asdict(found), indent=2))
    else:
        print(*found.lines, sep="\n")


@derived.command("list")
def list_them(config: ConfigOption = DEFAULT_CONFIG, as_json: JsonOption = False) -> None:
    """List the derived tables of the newest cut: the state of each, its cut and its rows."""
    loaded = load(config)
    row = published_row(loaded, None)
    timed = timed_tables(loaded, row)
    if as_json:
        print(json.dumps(listing_facts(row, timed), indent=2))
    elif row.derived:
        Console(highlight=False).print(listing(row, timed))
    else:
        print("no table is derived")


@derived.command("preview")
def preview(
    name: NameArgument,
    at: AtOption = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="The most rows.")] = 20,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    """Print the first rows that a definition gives at a cut, and write nothing."""
    row, rows = preview_of(load(config), name, at, limit)
    show_rows(row, rows, as_json=as_json)


@derived.command("late")
def late(  # noqa: PLR0917 - the options of a command
    name: NameArgument,
    where: Annotated[
        str | None,
        typer.Option(
            "--admit", metavar="WHERE", help="Count the late rows that meet it after all."
        ),
    ] = None,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why.")] = "",
    timeout: TimeoutOption = 300,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    """Print the rows that were late, and what became of each in its window; or admit some.

    The condition is SQL over the columns that are printed, such as "id = 7" or "_cut < 90".
    """
    if where is not None:
        admit(name, where, reason, timeout, config, as_json=as_json)
        return
    if reason:
        raise CdcError(
            ErrorKind.CONFIG,
            "--reason is for rows that are admitted",
            remedy='add --admit WHERE, such as --admit "id = 7"',
        )
    row, rows = late_rows(load(config), name)
    show_rows(row, rows, as_json=as_json)


@derived.command("verify")
def verify(  # noqa: PLR0917 - the options of a command
    names: NamesArgument = None,
    at: AtOption = None,
    by_source: Annotated[
        bool, typer.Option("--source", help="Let the source calculate them, at a cut of now.")
    ] = False,
    engine: EngineOption = Engine.LOCAL,
    timeout: TimeoutOption = 300,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    """Calculate tables again and compare all rows; exit 1 when any differs."""
    if by_source:
        report = by_source_now(load(config), names or (), at, timeout, engine)
    elif engine is Engine.SPARK:
        report = by_spark(load(config), names or (), at)
    else:
        report = verify_locally(load(config), names or (), at)
    if as_json:
        print(json.dumps(report_facts(report), indent=2))
    else:
        Console(highlight=False).print(verdicts(report))
    if not report.equal:
        raise typer.Exit(1)


@derived.command("rebuild")
def rebuild(
    name: NameArgument,
    *,
    into: IntoOption = None,
    at: AtOption = None,
    timeout: TimeoutOption = 300,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    """Have the job calculate a table anew and replace it in one commit; with --into do it here.

    Exits with 1 when the table at ``--into`` differs from the served one at the same cut.
    """
    if into is not None or at is not None:
        build_into(load(config), name, into, at, as_json=as_json)
        return
    with wait_line("asking the job") as tell:
        entry = rebuild_of(resolve(load(config)), name, timeout=timeout, tell=tell)
    if as_json:
        print(json.dumps(asdict(entry)))
    else:
        print(f"{name}: {entry.rows:,} rows, version {entry.version}, at cut {entry.at_cut}")


@derived.command("pause")
def pause(name: NameArgument, config: ConfigOption = DEFAULT_CONFIG) -> None:
    """Leave a table at its cut; readers are told that it lags, as are those of tables over it."""
    loaded = load(config)
    table = one_of(definitions(loaded, published_row(loaded, None)), name).table
    pauses(loaded.state_dir).ask(table)
    print(f"{name} is paused from the next cut on")


@derived.command("resume")
def resume(name: NameArgument, config: ConfigOption = DEFAULT_CONFIG) -> None:
    """Let a paused table go on, in one step to the next cut."""
    requests, table = pauses(load(config).state_dir), TableId.parse(name)
    if not requests.is_asked(table):
        raise CdcError(
            ErrorKind.CONFIG, f"{name} is not paused", remedy="see wal2lake derived list"
        )
    requests.done(table)
    print(f"{name} goes on at the next cut")


@derived.command("drop")
def drop(
    name: NameArgument,
    confirm: Annotated[
        str, typer.Option("--confirm", metavar="TABLE", help="Repeat the name.")
    ] = "",
    config: ConfigOption = DEFAULT_CONFIG,
) -> None:
    """Delete what the lake has of a table whose definition is gone."""
    if confirm != name:
        raise CdcError(
            ErrorKind.CONFIG,
            f"dropping {name} is not confirmed; nothing was changed",
            remedy=f"add --confirm {name}",
        )
    print(f"deleted {drop_of(load(config), name)}")
