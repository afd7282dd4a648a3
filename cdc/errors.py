"""One error type, one list of kinds, one table that says what each kind means for a caller.

The default is "stop and tell a person": only the kinds marked ``retry`` are transient.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Final


class ErrorKind(Enum):
    """What went wrong, as far as the reaction to it differs."""

    CONFIG = "config"
    PREREQUISITE = "prerequisite"
    UNREACHABLE = "unreachable"
    SOURCE_NOT_READY = "source_not_ready"
    CONFLICT = "conflict"
    TIMEOUT = "timeout"
    DIFFERENT = "different"
    TABLE_STOPPED = "table_stopped"
    BAD_EVENT = "bad_event"
    DISK_FULL = "disk_full"
    SERVER_FAILED = "server_failed"
    CHAIN_BROKEN = "chain_broken"
    CANCELLED = "cancelled"
    INTERNAL = "internal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How a caller reacts to a kind."""

    exit_code: int  # of the command line
    retry: bool  # True only where trying again unchanged can help


POLICY: Final[dict[ErrorKind, Policy]] = {
    ErrorKind.DIFFERENT: Policy(exit_code=1, retry=False),
    ErrorKind.CONFIG: Policy(exit_code=2, retry=False),
    ErrorKind.PREREQUISITE: Policy(exit_code=3, retry=False),
    ErrorKind.UNREACHABLE: Policy(exit_code=4, retry=True),
    ErrorKind.SOURCE_NOT_READY: Policy(exit_code=5, retry=False),
    ErrorKind.CONFLICT: Policy(exit_code=6, retry=False),
    ErrorKind.TIMEOUT: Policy(exit_code=7, retry=False),
    ErrorKind.TABLE_STOPPED: Policy(exit_code=8, retry=False),
    ErrorKind.BAD_EVENT: Policy(exit_code=9, retry=False),
    ErrorKind.DISK_FULL: Policy(exit_code=10, retry=False),
    ErrorKind.SERVER_FAILED: Policy(exit_code=11, retry=False),
    ErrorKind.CHAIN_BROKEN: Policy(exit_code=12, retry=False),
    ErrorKind.CANCELLED: Policy(exit_code=13, retry=False),
    ErrorKind.INTERNAL: Policy(exit_code=70, retry=False),
}


class CdcError(Exception):
    """What happened, its detail and what to do about it.

    ``message`` is a lower-case statement that names the thing and the place; ``detail`` adds
    facts; ``remedy`` says what the reader can do. A row value or a secret is in none of them.
    """

    def __init__(
        self, kind: ErrorKind, message: str, *, detail: str = "", remedy: str = ""
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.detail = detail
        self.remedy = remedy

    @property
    def policy(self) -> Policy:
        return POLICY[self.kind]

    def __str__(self) -> str:
        parts = [self.message]
        if self.detail:
            parts.append(self.detail)
        if self.remedy:
            parts.append(f"remedy: {self.remedy}")
        return "; ".join(parts)
