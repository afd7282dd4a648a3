"""``wal2lake quarantine`` lists, shows, retries and discards the events that were refused."""

import json
from typing import Annotated, Final

import typer
from rich.console import Console
from rich.text import Text

from cdc.cli.options import DEFAULT_CONFIG, ConfigOption, JsonOption
from cdc.cli.show.follow_operation import DetachOption, ask_and_follow, new_operation
from cdc.cli.show.refused_events import decoder_of, event_facts, event_rows, listing
from cdc.client.quarantine import Decoder, key_of, parse_offset, retry_of, select
from cdc.config import Config, load
from cdc.errors import CdcError, ErrorKind
from cdc.kafka.registry_client import RegistryClient
from cdc.lake.layout import ledger_path, quarantine_path
from cdc.lake.records.ledger import Ledger
from cdc.lake.records.quarantine import Quarantine, RefusedEvent
from cdc.state.pipeline import resolve
from cdc.tables import TableId, TableState

SHOWN: Final = 1000
"""How many events the terminal shows; --json prints all of them."""

# A row that a reading refused has a negative offset: -7 is an argument, not an option.
_NEGATIVE: Final = {"ignore_unknown_options": True}
quarantine = typer.Typer(
    help="List, show, retry or discard the events that were refused. "
    "Each command takes --config FILE and has its own --help: wal2lake quarantine list --help.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
TableArgument = Annotated[str, typer.Argument(metavar="TABLE", help="schema.table")]
OffsetsArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="[OFFSET]...", help="Offsets in the table's topic, as list shows them."),
]


@quarantine.command("list")
def list_them(
    table: Annotated[
        str | None, typer.Argument(metavar="[TABLE]", help="List only this table's events.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="List settled events too.")] = False,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    """List the open events: the offset and key of each, and why it was refused."""
    loaded = load(config)
    name = None if table is None else str(TableId.parse(table))
    events = _quarantine(loaded).rows(name, only_open=not everything, with_values=False)
    rows = event_rows(events if as_json else events[:SHOWN], decoder_of(loaded))
    if as_json:
        print(json.dumps(rows, indent=2))
        return
    console = Console(highlight=False)
    if rows:
        console.print(listing(rows))
    more = f", the first {SHOWN:,} shown" if len(events) > SHOWN else ""
    what = "event" if everything else "open event"
    console.print(f"{len(events):,} {what}{'' if len(events) == 1 else 's'}{more}", style="dim")


@quarantine.command("show", context_settings=_NEGATIVE)
def show(
    table: TableArgument,
    offset: Annotated[
        str,
        typer.Argument(metavar="OFFSET", help="The offset in the table's topic, or TOPIC:OFFSET."),
    ],
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    """Show everything about one event: the values of its row, and its raw bytes."""
    loaded = load(config)
    name = str(TableId.parse(table))
    topic, number = parse_offset(offset)
    rows = _quarantine(loaded).rows(name)
    chosen = select(
        rows if topic is None else [e for e in rows if e.topic == topic], name, [number]
    )
    facts = [event_facts(event, decoder_of(loaded)) for event in chosen]
    if as_json:
        print(json.dumps(facts if len(facts) > 1 else facts[0], indent=2))
        return
    console = Console(highlight=False)
    for each in facts:
        for label, value in each.items():
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            console.print(Text(f"{label:16} {text}"), soft_wrap=True)


@quarantine.command("retry", context_settings=_NEGATIVE)
def retry(
    table: TableArgument,
    offsets: OffsetsArgument = None,
    detach: DetachOption = False,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    """Read the rows of refused events from the source again: the named ones, or all open ones.

    If a key cannot be determined, or the table is stopped, the whole table is read.
    """
    loaded = load(config)
    name = TableId.parse(table)
    open_events = _open(loaded, name)
    chosen = select(open_events, str(name), _numbers(offsets))
    decoder = Decoder(RegistryClient(resolve(loaded).endpoints.registry).schema)
    key, stopped = key_of(loaded, name), _is_stopped(loaded, name)
    wanted = retry_of(chosen, open_events, key, decoder, stopped=stopped)
    if wanted.keys is None and not as_json:
        print(f"reading all of {name} again: {wanted.why_whole}")
    operation = new_operation("resnapshot", [str(name)], wanted.options)
    ask_and_follow(loaded, operation, as_json=as_json, detach=detach)


@quarantine.command("discard", context_settings=_NEGATIVE)
def discard(  # noqa: PLR0917 - what the command line can say
    table: TableArgument,
    offsets: OffsetsArgument = None,
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="Why they can be discarded; required.")
    ] = "",
    everything: Annotated[
        bool, typer.Option("--all", help="Discard all open events of the table.")
    ] = False,
    detach: DetachOption = False,
    config: ConfigOption = DEFAULT_CONFIG,
    as_json: JsonOption = False,
) -> None:
    """Settle events without a retry; they stay in the quarantine with user, time and reason."""
    loaded = load(config)
    name, numbers = TableId.parse(table), _numbers(offsets)
    _refuse_unclear(reason, numbers, everything=everything)
    chosen = select(_open(loaded, name), str(name), numbers)
    options = {"reason": reason.strip()}
    if everything:
        options["before"] = max(event.quarantined_at for event in chosen).isoformat()
    else:
        options["offsets"] = json.dumps(sorted(event.offset for event in chosen))
    operation = new_operation("discard", [str(name)], options)
    ask_and_follow(loaded, operation, as_json=as_json, detach=detach)


def _refuse_unclear(reason: str, offsets: list[int], *, everything: bool) -> None:
    if not reason.strip():
        raise CdcError(
            ErrorKind.CONFIG,
            "events are not discarded without a reason",
            remedy="give the reason with --reason TEXT",
        )
    if everything == bool(offsets):
        raise CdcError(
            ErrorKind.CONFIG,
            "the events to discard must be named: by their offsets, or with --all, not both",
            remedy="see the offsets with wal2lake quarantine list",
        )


def _quarantine(config: Config) -> Quarantine:
    return Quarantine(quarantine_path(config))


def _open(config: Config, table: TableId) -> list[RefusedEvent]:
    return _quarantine(config).rows(str(table), only_open=True)


def _is_stopped(config: Config, table: TableId) -> bool:
    last = Ledger(ledger_path(config)).last()
    entry = last.entry(str(table)) if last else None
    return entry is not None and entry.state == TableState.STOPPED.value


def _numbers(offsets: list[str] | None) -> list[int]:
    return [parse_offset(text)[1] for text in offsets or ()]
