"""Repeat an action in a thread while a block runs."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def meanwhile(act: Callable[[], object], *, every: float = 0.05) -> Iterator[Callable[[], None]]:
    """Call ``act`` every ``every`` seconds until the block ends; its error fails the block.

    The error is raised at the end of the block, or earlier if the block calls the function that it
    is given, which raises an error of ``act`` so far.
    """
    end, errors = threading.Event(), list[BaseException]()

    def run() -> None:
        try:
            while not end.wait(every):
                act()
        except BaseException as error:  # noqa: BLE001 - raised again below
            errors.append(error)

    def went_well() -> None:
        for error in errors:
            raise error

    thread = threading.Thread(target=run, name="meanwhile")
    thread.start()
    try:
        yield went_well
    finally:
        end.set()
        thread.join()
    went_well()
