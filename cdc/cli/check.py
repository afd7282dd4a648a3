"""``wal2lake check`` prints the findings of the preflight, as a short table or as JSON."""

import json
from collections.abc import Iterable
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cdc.cli.options import DEFAULT_CONFIG, ConfigOption, JsonOption
from cdc.client import check as preflight
from cdc.config import Config, load
from cdc.errors import POLICY, CdcError, ErrorKind
from cdc.kafka.broker import Broker
from cdc.source.server.finding import Finding, Level
from cdc.state.endpoints import (
    Endpoints,
    configured_broker,
    configured_http_url,
    configured_source_url,
)
from cdc.state.pipeline import Pipeline, resolve

_COLOURS: Final = {Level.OK: "green", Level.WARNING: "yellow", Level.ERROR: "red"}
_NAMED: Final = 3
"""How many subjects of the same warning are named; the rest are only counted."""

VerboseOption = Annotated[
    bool, typer.Option("--verbose", "-v", help="Print every finding, not only the problems.")
]


def check(
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
    verbose: VerboseOption = False,
) -> None:
    """Look at source and servers without changing anything; exit 5 when something is wrong."""
    loaded = load(config)
    findings = preflight.check(_pipeline(loaded))
    if as_json:
        print(json.dumps([_plain(finding) for finding in findings], indent=2))
    else:
        _print(findings if verbose else folded(findings), summary(findings, verbose=verbose))
    if any(finding.level is Level.ERROR for finding in findings):
        raise typer.Exit(POLICY[ErrorKind.SOURCE_NOT_READY].exit_code)


def folded(findings: Iterable[Finding]) -> list[Finding]:
    """Return the errors, then the warnings; equal warnings about several subjects become one."""
    everything = list(findings)
    by_text: dict[tuple[str, str], list[str]] = {}
    for finding in everything:
        if finding.level is Level.WARNING:
            by_text.setdefault((finding.message, finding.remedy), []).append(finding.subject)
    errors = [finding for finding in everything if finding.level is Level.ERROR]
    warnings = [
        Finding.warning(_subjects(subjects), message, remedy=remedy)
        for (message, remedy), subjects in by_text.items()
    ]
    return errors + warnings


def summary(findings: Iterable[Finding], *, verbose: bool) -> str:
    """Return how many findings each level has, and how to print the good ones."""
    levels = [finding.level for finding in findings]
    count = {level: levels.count(level) for level in Level}
    counts = [
        _counted(count[Level.ERROR], "error"),
        _counted(count[Level.WARNING], "warning"),
        f"{count[Level.OK]} ok",
    ]
    return ", ".join(counts) + ("" if verbose else "; --verbose prints all")


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _subjects(subjects: list[str]) -> str:
    more = len(subjects) - _NAMED
    named = ", ".join(subjects[:_NAMED])
    return f"{named} and {more} more" if more > 0 else named


def _pipeline(config: Config) -> Pipeline:
    """Return the pipeline, with an empty address for each embedded server that is not up.

    Such a server needs no check. Raises UNREACHABLE when the source itself is embedded and not
    up, because then there is nothing to check.
    """
    try:
        return resolve(config)
    except CdcError as error:
        source = configured_source_url(config.source)
        if error.kind is not ErrorKind.UNREACHABLE or source is None:
            raise
        endpoints = Endpoints(
            source_url=source,
            kafka=configured_broker(config.kafka) or Broker(""),
            connect=configured_http_url("connect", config.connect) or "",
            registry=configured_http_url("registry", config.registry) or "",
        )
        return Pipeline(config, endpoints)


def _plain(finding: Finding) -> dict[str, str]:
    return {
        "level": finding.level.value,
        "subject": finding.subject,
        "message": finding.message,
        "remedy": finding.remedy,
    }


def _print(findings: list[Finding], closing: str) -> None:
    console = Console()
    if findings:
        console.print(_table(findings))
    console.print(closing, style="dim")


def _table(findings: list[Finding]) -> Table:
    table = Table(show_edge=False)
    for name in ("", "subject", "finding", "remedy"):
        table.add_column(name, overflow="fold")
    for finding in findings:
        mark = Text(finding.level.value, style=_COLOURS[finding.level])
        table.add_row(mark, *map(Text, (finding.subject, finding.message, finding.remedy)))
    return table
