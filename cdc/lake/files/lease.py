"""Keeps a lock in an object store: an object that its holder writes anew, by conditional puts.

No clock of another machine counts. Whoever finds a holder watches the object for ``LEASE_SECONDS``
of its own: a holder that has not written it by then has stopped writing to the lake before, because
it counts ``HELD_SECONDS`` from before its last renewal. A request that it had begun has ended by
then, or is refused for what the next holder has written.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from threading import Event
from typing import TYPE_CHECKING, Final
from uuid import uuid4

import obstore
import structlog
from obstore.exceptions import AlreadyExistsError, PreconditionError

from cdc.errors import CdcError
from cdc.lake.files.file_store import StoreError
from cdc.lake.files.requests import NoAnswerError, again, once
from cdc.lake.files.s3_access import bucket_store, place_of
from cdc.waiting import beside

if TYPE_CHECKING:
    from obstore import PutMode

LEASE_SECONDS: Final = 60.0
HELD_SECONDS: Final = 45.0
RENEWED_SECONDS: Final = 10.0
LOOK_SECONDS: Final = 1.0
logger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """Who holds a lease."""

    name: str  # for a person; empty if nobody holds it
    place: str  # of what only one process can have at a time, such as a locked file; or empty
    run: str  # of this process alone
    turn: str = ""  # another one at each renewal

    def content(self) -> bytes:
        """Return the bytes of the object, unlike any before."""
        return json.dumps({**asdict(self), "turn": uuid4().hex}).encode()


NOBODY: Final = Holder(name="", place="", run="")


class TakenError(Exception):
    """Says that another process has the lock, and names it."""


class Lease:
    """Holds the lock at ``path`` for one process; any thread may call ``check``."""

    def __init__(
        self,
        path: str,
        holder: Holder,
        *,
        renewed: Callable[[float], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare to hold it; ``renewed`` is told for how many seconds it is held from now on."""
        place = place_of(path)
        self._path, self._key = path, place.key("")
        self._bucket = bucket_store(place.bucket)
        self._holder, self._renewed, self._clock = holder, renewed, clock
        self._tag: str | None = None  # of the object as this process has written it
        self._until = clock()  # when it is held no more
        self._successor: str | None = None
        self._look = Event()  # never set

    @contextmanager
    def held(self, refusal: Callable[[str], CdcError]) -> Iterator[None]:
        """Hold the lock for the length of the block.

        Raises ``refusal(holder)`` while another process holds it, StoreError without an answer.
        """
        self._take(refusal)
        try:
            with beside(self._keep, "lease"):
                yield
        finally:
            self._release()

    def check(self) -> None:
        """Raise StoreError if the lock may be another's by now."""
        if self._successor is not None:
            raise StoreError(f"{self._path} is held by {self._successor} now")
        if self._clock() >= self._until:
            raise StoreError(f"{self._path} could not be renewed for {HELD_SECONDS:.0f} s")

    def _take(self, refusal: Callable[[str], CdcError]) -> None:
        found, self._tag = again(self._read, f"read {self._key}")
        if found.name and not (found.place and found.place == self._holder.place):
            logger.info("is the holder alive?", lock=self._path, holder=found.name)
            if self._is_renewed():
                raise refusal(found.name)
        try:
            again(lambda: self._write(self._holder), f"put {self._key}")
        except TakenError as other:
            raise refusal(str(other)) from None

    def _is_renewed(self) -> bool:
        """Return whether somebody writes the object within the time of a lease."""
        end = self._clock() + LEASE_SECONDS
        while self._clock() < end:
            if again(self._read, f"read {self._key}")[1] != self._tag:
                return True
            self._look.wait(LOOK_SECONDS)
        return False

    def _read(self) -> tuple[Holder, str | None]:
        """Return the holder, and what tells the object from any later one; None without one."""
        try:
            found = obstore.get(self._bucket, self._key)
        except FileNotFoundError:
            return NOBODY, None
        return Holder(**json.loads(bytes(found.bytes()))), found.meta["e_tag"]

    def _keep(self, over: Event) -> None:
        while not over.wait(RENEWED_SECONDS):
            try:
                once(lambda: self._write(self._holder), f"put {self._key}")
            except TakenError as other:
                self._successor = str(other)
                self._renewed(0.0)
                logger.warning("the lock is lost", lock=self._path, holder=str(other))
                return
            except StoreError as error:
                logger.warning("the lock is not renewed", lock=self._path, reason=str(error))

    def _write(self, holder: Holder) -> None:
        """Write the object anew, if it still is what this process knows.

        Raises TakenError if it is another's. If it is what an earlier request of this process has
        written, although there was no answer, it is written again: nobody knows since when.
        """
        began = self._clock()
        if not self._put(holder):
            found, tag = self._read()
            if found.run != self._holder.run:
                raise TakenError(found.name or "nobody, but another has had it")
            self._tag = tag
            if not self._put(holder):
                raise NoAnswerError(f"put {self._key}: the object store is between two answers")
        self._until = began + HELD_SECONDS
        self._renewed(self._until - self._clock())

    def _put(self, holder: Holder) -> bool:
        """Write the object; return whether it was what this process knows."""
        mode: PutMode = "create" if self._tag is None else {"e_tag": self._tag}
        content = holder.content()
        try:
            put = obstore.put(self._bucket, self._key, content, mode=mode, use_multipart=False)
        except (AlreadyExistsError, PreconditionError):
            return False
        self._tag = put["e_tag"]
        return True

    def _release(self) -> None:
        with suppress(Exception):  # whoever is to be told may be gone, and writes nothing then
            self._renewed(0.0)
        self._renewed = lambda _: None
        with suppress(StoreError, TakenError):
            once(lambda: self._write(replace(self._holder, name="")), f"put {self._key}")
        self._until = self._clock()
