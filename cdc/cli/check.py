"""``wal2lake check``: the preflight, as a table or as JSON."""

import json
from typing import Final

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cdc.cli.options import DEFAULT_CONFIG, ConfigOption, JsonOption
from cdc.config import Config, load
from cdc.errors import POLICY, CdcError, ErrorKind
from cdc.operate import check as preflight
from cdc.source.finding import Finding, Level
from cdc.stack.endpoints import Endpoints, configured_source_url, resolve

_COLOURS: Final = {Level.OK: "green", Level.WARNING: "yellow", Level.ERROR: "red"}


def check(config: ConfigOption = DEFAULT_CONFIG, as_json: JsonOption = False) -> None:
    """Look at source and servers, change nothing; exit 5 when something is wrong."""
    loaded = load(config)
    findings = preflight.check(loaded, _known_endpoints(loaded))
    if as_json:
        print(json.dumps([_plain(finding) for finding in findings], indent=2))
    else:
        _print(findings)
    if any(finding.level is Level.ERROR for finding in findings):
        raise typer.Exit(POLICY[ErrorKind.SOURCE_NOT_READY].exit_code)


def _known_endpoints(config: Config) -> Endpoints:
    """With empty strings for embedded servers that are not up: they need no check.

    Raises UNREACHABLE when the source itself is embedded and not up: there is nothing to look at.
    """
    try:
        return resolve(config)
    except CdcError as error:
        source = configured_source_url(config.source)
        if error.kind is not ErrorKind.UNREACHABLE or source is None:
            raise
        return Endpoints(
            source_url=source,
            kafka=config.kafka.bootstrap_servers or "",
            connect=config.connect.url or "",
            registry=config.registry.url or "",
        )


def _plain(finding: Finding) -> dict[str, str]:
    return {
        "level": finding.level.value,
        "subject": finding.subject,
        "message": finding.message,
        "remedy": finding.remedy,
    }


def _print(findings: list[Finding]) -> None:
    table = Table(show_edge=False)
    for name in ("", "what", "found", "remedy"):
        table.add_column(name, overflow="fold")
    for finding in findings:
        mark = Text(finding.level.value, style=_COLOURS[finding.level])
        table.add_row(mark, *map(Text, (finding.subject, finding.message, finding.remedy)))
    console = Console()
    console.print(table)
    count = {level: sum(f.level is level for f in findings) for level in Level}
    console.print(f"{count[Level.ERROR]} errors, {count[Level.WARNING]} warnings", style="dim")
