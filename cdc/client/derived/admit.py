"""Have the job count late rows after all, and wait for the cut that does."""

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from cdc.client.derived.at_cut import definitions, input_at, one_of, published_row
from cdc.client.status.cut_wait import wait_for_cut
from cdc.config import Config
from cdc.derive.definition.definition import Definition
from cdc.derive.engine.inputs import key_of
from cdc.derive.late.rule import LateRule
from cdc.derive.late_rows.admitting import LateTable
from cdc.errors import CdcError, ErrorKind
from cdc.lake.layout import ledger_path
from cdc.lake.records.ledger import Ledger, LedgerRow
from cdc.lake.upkeep.held import held
from cdc.source.server import barrier
from cdc.source.server.connection import connect
from cdc.state.admissions import Admission, Admissions, admission_now, admissions
from cdc.state.pipeline import resolve
from cdc.tables import TableState

LONGEST: Final = 1000
"""So many characters a reason may have: it is in each of the rows that say what was admitted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitting:
    """Describes what a command would ask for, before the job is asked."""

    definition: Definition
    rule: LateRule
    asked: Admission
    rows: int  # that would be admitted
    matching: int  # that meet the condition, also those that are admitted already


@dataclass(frozen=True, slots=True, kw_only=True)
class AdmittedAt:
    """Names the cut from which on late rows count: the newest one if all have counted already."""

    cut: int
    rows: int  # places, each a key in a window
    matching: int


def admit(
    config: Config,
    name: str,
    where: str,
    reason: str,
    *,
    timeout: float,
    tell: Callable[[str], None],
) -> AdmittedAt:
    """Admit the late rows of the newest cut that meet a condition; return the first cut with them.

    Raises CONFIG if that is not possible, TIMEOUT if no cut has them within ``timeout`` seconds,
    and TABLE_STOPPED if the table stops. A request that was given up on still waits for the job.
    """
    found = admitting(config, name, where, reason)
    asked = found.asked
    if not found.rows:
        return AdmittedAt(cut=asked.cut, rows=0, matching=found.matching)
    waiting, source = admissions(config.state_dir), resolve(config).endpoints.source_url
    waiting.ask(asked)
    with connect(source) as connection:
        barrier.touch(connection, uuid.uuid4().hex)  # an idle source would bring no cut
    tell(f"admitting {found.rows:,} late rows")
    row = wait_for_cut(
        Ledger(ledger_path(config)),
        lambda row: is_admitted(config, found, row, waiting),
        after=asked.cut,
        timeout=timeout,
    )
    if row is None:
        raise CdcError(
            ErrorKind.TIMEOUT,
            f"no cut has the admitted rows of {name} within {timeout:g} s",
            remedy="see wal2lake status; the job does it when it can, or allow more time",
        )
    return AdmittedAt(cut=row.cut, rows=found.rows, matching=found.matching)


def admitting(config: Config, name: str, where: str, reason: str) -> Admitting:
    """Return what would be admitted at the newest cut; nothing is asked of the job.

    Raises CONFIG without a reason, for a table without late rows or with policy: keep, and for a
    condition that is not valid or that no late row meets.
    """
    with held(config.lake.path):
        row = published_row(config, None)
        definition = one_of(definitions(config, row), name)
        rule = _rule(definition)
        asked = admission_now(rule.rows, where, _reason(reason), row.cut)
        found = _late_table(row, rule).chosen(asked, config.derived.memory_mb)
    if not found.matching:
        raise CdcError(
            ErrorKind.CONFIG,
            f"--admit: no late row of {name} at cut {row.cut} meets {where}",
            remedy=f"wal2lake derived late {name} lists them",
        )
    return Admitting(
        definition=definition,
        rule=rule,
        asked=asked,
        rows=found.rows.num_rows,
        matching=found.matching,
    )


def is_admitted(config: Config, found: Admitting, row: LedgerRow, waiting: Admissions) -> bool:
    """Return whether a cut has all that was asked for. Raises TABLE_STOPPED if it never will."""
    for table in (found.rule.rows, found.definition.table):
        entry = row.derived_entry(str(table))
        if entry is not None and entry.state == TableState.STOPPED.value:
            raise CdcError(ErrorKind.TABLE_STOPPED, f"{table} is stopped: {entry.reason}")
        if entry is None or entry.at_cut != row.cut:
            return False
    if found.asked in waiting.of(found.rule.rows):
        return False
    with held(config.lake.path):
        left = _late_table(row, found.rule).chosen(found.asked, config.derived.memory_mb)
    return not left.rows.num_rows


def _late_table(row: LedgerRow, rule: LateRule) -> LateTable:
    key = key_of(input_at(rule.table, row).open())
    return LateTable(input_at(rule.rows, row).open(), rule, key)


def _rule(definition: Definition) -> LateRule:
    if definition.late is None:
        raise CdcError(
            ErrorKind.CONFIG,
            f"{definition.table} has no late rows",
            remedy="write late: {column: ts, allowed: 10 minutes, policy: aside} in its definition",
        )
    if definition.late.policy == "keep":
        raise CdcError(
            ErrorKind.CONFIG,
            f"{definition.file}: policy: keep counts the late rows of {definition.table} already",
            remedy="leave out --admit; policy: aside puts late rows aside",
        )
    return definition.late


def _reason(text: str) -> str:
    words = " ".join(text.split())
    if not words or len(words) > LONGEST:
        what = "is missing" if not words else f"is longer than {LONGEST} characters"
        raise CdcError(
            ErrorKind.CONFIG,
            f"--admit: the reason {what}; nothing was changed",
            remedy="add --reason TEXT: it is kept with the rows, for whoever asks later",
        )
    return words
