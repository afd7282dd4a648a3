"""The command line imports the file of a command only when that command is called.

``wal2lake --help`` lists the commands from the table below and imports none of them, so it
answers at once, even on a machine where Spark, Java or a server is missing.
"""

from importlib import import_module
from typing import Final

import typer

COMMANDS: Final = {
    "init": "Write a commented wal2lake.yaml.",
    "check": "Check the source, the servers and this machine for anything that would fail.",
    "up": "Start the job, the connector, and each server whose address is not configured.",
    "down": "Stop everything that up started.",
    "run": "Run only the job, in the foreground.",
    "plan": "Show what apply-config would do: tables added and removed, settings changed.",
    "apply-config": "Apply a changed wal2lake.yaml while everything keeps running.",
    "status": "Show the position and lag of each table and the health of each component.",
    "sync": "Wait until everything committed in the source so far is in the lake.",
    "resnapshot": "Read tables from the source again, while all others continue.",
    "replay": "Rebuild one table from the log or from Kafka, in place or at another path.",
    "rebuild": "Rebuild every table from the log or from Kafka.",
    "forget": "Delete a table's past, so that no byte of its deleted rows is left.",
    "verify": "Compare every row and value of source and lake at one cut.",
    "derived": "Check, explain, list, preview, verify, rebuild, pause and drop derived tables.",
    "operations": "List the operations, show one in detail, or follow it to its end.",
    "pause": "Pause an operation at its next safe point.",
    "resume": "Resume a paused operation.",
    "cancel": "Cancel an operation at its next safe point.",
    "quarantine": "List, show, retry or discard the events that were refused.",
    "cuts": "List the published cuts: in each, all tables show the same moment of the source.",
    "sql": "Query the lake tables, as they are now or as of a cut.",
    "changes": "Print the rows by which a table differs from what it was at an earlier cut.",
}

FILES: Final = {
    "changes": "sql",
    "pause": "control",
    "resume": "control",
    "cancel": "control",
    "rebuild": "replay",
}
"""Commands that share a file; the file of every other command has the command's name."""

app = typer.Typer(
    name="wal2lake",
    help="Keep Delta Lake tables equal to Postgres tables, and compare the two on demand.",
    no_args_is_help=True,
    add_completion=False,
    # A traceback with local variables would show row values and passwords.
    pretty_exceptions_enable=False,
)


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", help="Print the version."),  # noqa: FBT003
) -> None:
    if version:
        typer.echo(import_module("cdc").__version__)
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
        raise typer.Exit(2)


def _register(name: str, summary: str) -> None:
    @app.command(
        name,
        help=summary,
        add_help_option=False,  # the real command answers --help
        context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    )
    def run_it(context: typer.Context) -> None:
        _call(name, summary, context)


def _call(name: str, summary: str, context: typer.Context) -> None:
    """Run the real command with the arguments that the stub received."""
    function = name.replace("-", "_")
    real = getattr(import_module(f"cdc.cli.{FILES.get(name, function)}"), function)
    single = real
    if not isinstance(real, typer.Typer):  # a command with subcommands is a Typer already
        single = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        single.command(name, help=summary)(real)
    command = typer.main.get_command(single)
    code = command.main(args=context.args, prog_name=context.command_path, standalone_mode=False)
    if isinstance(code, int) and code:
        raise typer.Exit(code)


for _name, _summary in COMMANDS.items():
    _register(_name, _summary)
