"""Holds what the steps of all derived tables share, in whatever lane they are."""

from dataclasses import dataclass, field
from threading import Lock

from cdc.derive.engine.opened_inputs import OpenedInputs
from cdc.derive.step.known_changes import KnownChanges


@dataclass(frozen=True, slots=True)
class Shared:
    """Holds what any thread may use."""

    inputs: OpenedInputs = field(default_factory=OpenedInputs)
    known: KnownChanges = field(default_factory=KnownChanges)
    alone: Lock = field(default_factory=Lock)
    """Held by a whole query: it may take as much memory as all that is kept."""
