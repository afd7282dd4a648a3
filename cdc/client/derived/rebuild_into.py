"""Build a derived table anew at a cut, beside the served one, and compare the two.

This process builds it, whether the job runs or not, by the step that the job would make. The table
has a name of its own in the lake, and no cut has it: nobody keeps it up.
"""

import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from cdc.client.derived.at_cut import (
    definitions,
    input_at,
    one_of,
    published_row,
    refuse_timeless,
)
from cdc.client.derived.free_name import free_path
from cdc.client.derived.likeness import Likeness, likeness
from cdc.config import Config
from cdc.derive.definition.definition import Definition
from cdc.derive.engine.input import Input
from cdc.derive.keep.allowed import limits
from cdc.derive.step.limits import Limits
from cdc.derive.step.mark import Mark
from cdc.derive.step.ready import Step
from cdc.derive.step.resident import ResidentTables
from cdc.derive.step.step import Bringing
from cdc.derive.step.writer import TableWriter
from cdc.errors import CdcError, ErrorKind
from cdc.lake.records.ledger import LedgerRow
from cdc.lake.table.deletion import delete_table
from cdc.lake.upkeep.held import held

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """Says what lies at the path now, and whether it equals the served table at that cut."""

    table: str
    into: str
    path: str
    cut: int
    rows: int
    seconds: float  # to calculate and to write
    likeness: Likeness | None  # None where the two were not compared
    not_compared: str = ""  # why not


def rebuild_into(config: Config, name: str, into: str, at: str | None, *, say: Say) -> Rebuilt:
    """Build the table ``name`` at the cut into the table ``into``, and compare.

    Raises CONFIG for an ``into`` that is taken or no name, for an unknown table or cut, and for a
    table that follows from the log; TABLE_STOPPED if the query fails. Then nothing is left.
    """
    with held(config.lake.path):
        row = published_row(config, at)
        definition = one_of(definitions(config, row), name)
        _refuse_of_log(definition)
        refuse_timeless(definition, row)
        path = free_path(config, into)
        with _scratch(config) as allowed:
            say(f"calculating {name} at cut {row.cut}")
            began = time.monotonic()
            with _emptied_on_failure(path):
                step = _built(definition, row, path, allowed)
            seconds = round(time.monotonic() - began, 3)
            say("comparing with the served table")
            found, why_not = _compared(definition, row, Input(path, step.version), allowed)
    return Rebuilt(
        table=name,
        into=into,
        path=path,
        cut=row.cut,
        rows=step.rows,
        seconds=seconds,
        likeness=found,
        not_compared=why_not,
    )


def _refuse_of_log(definition: Definition) -> None:
    if definition.is_of_events:
        raise CdcError(
            ErrorKind.CONFIG,
            f"{definition.table} follows from the log, and not from a query",
            remedy="leave --into out: the job makes it anew, if the log reaches that far",
        )


@contextmanager
def _scratch(config: Config) -> Iterator[Limits]:
    """Give what a step may take, with a folder of its own: the job has the other one."""
    folder = config.state_dir / "scratch" / f"rebuild-{uuid.uuid4().hex}"
    try:
        yield replace(limits(config), scratch=folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _emptied_on_failure(path: str) -> Iterator[None]:
    """Delete what was written to a path that was empty, so that its name is free again."""
    try:
        yield
    except BaseException:
        delete_table(path)
        raise


def _built(definition: Definition, row: LedgerRow, path: str, allowed: Limits) -> Step:
    inputs = {table: input_at(table, row) for table in definition.inputs}
    with closing(ResidentTables(allowed.memory_mb, allowed.scratch)) as resident:
        return Bringing(
            definition=definition,
            inputs=inputs,
            writer=TableWriter(path, Path(allowed.scratch) / "key_index"),
            mark=Mark.at(definition.hash, row, inputs),
            limits=allowed,
            resident=resident,
        ).bring(anew=True)


def _compared(
    definition: Definition, row: LedgerRow, built: Input, allowed: Limits
) -> tuple[Likeness | None, str]:
    """Return how the served rows differ; None, and why, where the cut has none of its own."""
    table = str(definition.table)
    entry = row.derived_entry(table)
    if entry is None or entry.version < 0:
        return None, f"cut {row.cut} does not have {table}"
    if entry.at_cut != row.cut:
        return None, f"{table} is at cut {entry.at_cut}"
    try:
        served = Input.of(entry).open()
    except CdcError as error:
        return None, error.message
    return likeness(built.open(), served, definition.key, allowed), ""
