"""A line that says what is being waited for: on a terminal only, never in a pipe or a log."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape


@contextmanager
def waiting(first: str) -> Iterator[Callable[[str], None]]:
    """Shows ``first``, then what the function inside is called with; gone at the end."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda _text: None
        return
    with console.status(escape(first)) as line:
        yield lambda text: line.update(escape(text))
