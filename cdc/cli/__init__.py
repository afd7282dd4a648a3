"""The command line: a command's file is imported when the command is called.

``wal2lake --help`` lists the commands from the table below and imports none of them, so that it
answers at once on a machine where Spark, Java or a server is missing.
"""

from importlib import import_module
from typing import Final

import typer

COMMANDS: Final = {
    "init": "Write a commented wal2lake.yaml.",
    "check": "Look for what would not work, in the source, the servers and on this machine.",
    "up": "Start the servers that are not configured, the connector and the job.",
    "down": "Stop what up started.",
    "run": "Run the job alone, in the foreground.",
    "plan": "Show what apply-config would do: tables that come and go, settings.",
    "apply-config": "Take a changed wal2lake.yaml over, while all else goes on.",
    "status": "Show how far every table is and how far it is behind.",
    "sync": "Wait until everything committed in the source so far is in the lake.",
    "resnapshot": "Read tables again from the source, while all others go on.",
    "replay": "Make a table anew of the log or of Kafka, in its place or beside it.",
    "rebuild": "Make every table anew of the log or of Kafka.",
    "verify": "Compare every row and value of source and lake at one cut.",
    "operations": "List what was asked of the job, follow it, see what came of it.",
    "pause": "Let an operation rest at its next safe point.",
    "resume": "Let a paused operation go on.",
    "cancel": "End an operation at its next safe point.",
    "quarantine": "List what was refused, show it, retry it, or give it up.",
    "cuts": "List the published cuts, each one moment of the source in all tables.",
    "sql": "Query the lake tables, now or as they were at a cut.",
}

FILES: Final = {"pause": "control", "resume": "control", "cancel": "control"}
"""The files of commands that share one; every other has the command's name."""

app = typer.Typer(
    name="wal2lake",
    help="Keeps Delta Lake tables equal to Postgres tables, continuously, and proves it.",
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
    """Run the command with the arguments that the stub received."""
    function = name.replace("-", "_")
    found = getattr(import_module(f"cdc.cli.{FILES.get(name, function)}"), function)
    single = found
    if not isinstance(found, typer.Typer):  # one with commands of its own is there already
        single = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        single.command(name, help=summary)(found)
    command = typer.main.get_command(single)
    code = command.main(args=context.args, prog_name=context.command_path, standalone_mode=False)
    if isinstance(code, int) and code:
        raise typer.Exit(code)


for _name, _summary in COMMANDS.items():
    _register(_name, _summary)
