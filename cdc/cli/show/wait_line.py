"""Show what a command is waiting for, on a terminal only, never in a pipe or a log."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape


@contextmanager
def wait_line(first: str) -> Iterator[Callable[[str], None]]:
    """Show ``first``, then each text given to the yielded function; clear the line at the end."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _text: None
        return
    with console.status(escape(first)) as line:
        yield lambda text: line.update(escape(text))
