"""Restarts processes of the stack that have died, with growing pauses while they die early."""

import time
from dataclasses import dataclass

from cdc.errors import POLICY, CdcError
from cdc.stack.artifacts import prerequisites
from cdc.stack.embedded import EmbeddedStack
from cdc.stack.process.log_files import rotate_all
from cdc.stack.process.stack_report import Member, StackReport
from cdc.stack.servers.job import FINAL_EXIT_CODES
from cdc.stack.servers.patience import START_SECONDS, Clock, Patience
from cdc.stack.supervise.connector_watch import ConnectorWatch

_LONGEST_PAUSE_SECONDS = 30.0
_OWN_EXIT_CODES = frozenset(policy.exit_code for policy in POLICY.values())
"""With these the job ends by itself, and says why."""
_STABLE_SECONDS = 60.0
"""After a process has run this long, its next restart waits the shortest pause again."""


@dataclass(slots=True)
class Backoff:
    """Doubles the pause between a death and the next start: 1, 2, 4, ... up to 30 seconds."""

    attempts: int = 0

    def after_death(self, lived: float) -> float:
        """Return the pause in seconds after a process that ran for ``lived`` seconds."""
        self.attempts = 1 if lived >= _STABLE_SECONDS else self.attempts + 1
        return min(2.0 ** (self.attempts - 1), _LONGEST_PAUSE_SECONDS)


@dataclass(slots=True)
class Life:
    """Holds the state of one supervised process across its restarts."""

    backoff: Backoff
    started_at: float
    restart_at: float | None = None
    over: bool = False  # it is not restarted any more
    patience: Patience | None = None


class Watch:
    """Watches the processes and the connector; the supervisor calls ``look()`` in a loop."""

    def __init__(
        self,
        stack: EmbeddedStack,
        report: StackReport,
        connector: ConnectorWatch,
        clock: Clock = time.monotonic,
    ) -> None:
        self._stack = stack
        self._report = report
        self._connector = connector
        self._clock = clock
        self._lives = {name: Life(Backoff(), clock()) for name in stack.processes}

    def look(self) -> None:
        """Rotate logs, restart what has died and report changes; never blocks for long."""
        rotate_all(self._stack.state)
        for name, life in self._lives.items():
            if not life.over:
                self._look_at(name, life)
        if message := self._connector.look(self._clock()):
            self._report.note_connector(message)
            self._stack.say(message)

    def _look_at(self, name: str, life: Life) -> None:
        if life.restart_at is not None:
            if self._clock() >= life.restart_at:
                self._start(name, life)
        elif (code := self._stack.processes[name].exit_code()) is not None:
            self._died(name, life, f"ended with exit code {code}", code)
        elif self._report.members[name].state == "starting":
            self._look_at_start(name, life)

    def _look_at_start(self, name: str, life: Life) -> None:
        if self._stack.servers[name].is_ready():
            member = self._report.members[name]
            member.state, member.reason = "running", ""
            self._stack.say(f"{name} is ready again")
        elif life.patience is not None and life.patience.is_over():
            self._stack.processes[name].stop()
            stalled = f"was not ready and made no progress for {START_SECONDS} s"
            self._died(name, life, stalled, None)

    def _died(self, name: str, life: Life, what: str, code: int | None) -> None:
        self._stack.processes[name].sweep()
        if name == "job" and code in FINAL_EXIT_CODES:
            life.over = True
            self._say(name, "failed", f"{what}: {self._words(name) or self._last(name)}")
            return
        if name == "job" and code in _OWN_EXIT_CODES and (words := self._words(name)):
            what += f": {words}"
        pause = life.backoff.after_death(self._clock() - life.started_at)
        life.restart_at = self._clock() + pause
        self._say(name, "waiting", f"{what}{self._disk()}; restarting in {pause:.0f} s")

    def _start(self, name: str, life: Life) -> None:
        life.restart_at, life.started_at = None, self._clock()
        member = self._report.members[name]
        member.restarts += 1
        try:
            self._stack.spawn(self._stack.servers[name])
        except (CdcError, OSError) as error:
            self._died(name, life, f"could not be started: {error}", None)
            return
        life.patience = Patience(self._stack.servers[name], self._clock)
        member.pid = self._stack.processes[name].pid
        self._say(name, "starting", "was restarted")

    def _say(self, name: str, state: str, what: str) -> None:
        member = self._report.members[name]
        member.state, member.reason = state, what
        if state != "starting":
            member.pid = None
        self._stack.say(f"{name} {what}")

    def _words(self, name: str) -> str:
        """Return the error and remedy that the process ended with; empty if it named none."""
        lines = self._lines(name)
        return "; ".join([line for line in lines if line.startswith(("error: ", "remedy: "))][-2:])

    def _last(self, name: str) -> str:
        return "".join(self._lines(name)[-1:])

    def _lines(self, name: str) -> list[str]:
        return self._stack.processes[name].failure("").detail.splitlines()

    def _disk(self) -> str:
        try:
            prerequisites.check_disk(self._stack.state.root)
        except CdcError as error:
            return f" ({error.message})"
        return ""


def member_of(stack: EmbeddedStack, name: str) -> Member:
    """Return the report's entry for a process that has just become ready."""
    return Member(pid=stack.processes[name].pid, state="running")
