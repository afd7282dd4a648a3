"""Opens each input once at a cut, for all tables that read it."""

from dataclasses import dataclass, field
from threading import Lock

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from cdc.derive.engine.input import Input
from cdc.lake.files.unreachable import refuse_silence


@dataclass(slots=True)
class OpenedInputs:
    """Keeps the inputs as they were opened last; any thread may ask.

    One that was open at the cut before is brought on by the commits since: to open it anew costs
    three times as much. So what was given at a cut is not to be used after the next has begun.
    """

    _given: dict[Input, DeltaTable] = field(default_factory=dict)
    _before: dict[str, DeltaTable] = field(default_factory=dict)  # by path
    _lock: Lock = field(default_factory=Lock)

    def begin(self) -> None:
        """Begin a cut."""
        self._before = {one.path: opened for one, opened in self._given.items()}
        self._given = {}

    def open(self, one: Input) -> DeltaTable:
        """Open an input; raises what ``Input.open`` raises."""
        with self._lock:
            if one not in self._given:
                self._given[one] = self._brought_on(one) or one.open()
            return self._given[one]

    def _brought_on(self, one: Input) -> DeltaTable | None:
        """Return the input as it was opened before, if that is at its version now."""
        opened = self._before.pop(one.path, None)
        if opened is None or str(opened.metadata().id) != one.delta_id:
            return None
        try:
            if opened.version() < one.version:
                opened.update_incremental()
        except DeltaError as error:
            refuse_silence(error)
            return None  # its log was cleaned
        return opened if opened.version() == one.version else None
