"""An executor whose work is done when the test says so."""

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, TypeVar

T = TypeVar("T")


class Later(Executor):
    """Does what is submitted when told to: the test is the other thread."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:  # noqa: ANN401 - whatever fn takes
        future = Future[T]()

        def work() -> None:
            try:
                future.set_result(fn(*args, **kwargs))
            except Exception as error:  # noqa: BLE001 - as every executor does
                future.set_exception(error)

        self.waiting.append(work)
        return future

    def work(self) -> int:
        """Do what waits, and return how much it was."""
        now, self.waiting = self.waiting, []
        for each in now:
            each()
        return len(now)
