"""Run the code of a fold, which was checked before, and return its function ``apply``."""

from collections.abc import Callable, Mapping
from decimal import Context
from types import CodeType, MappingProxyType
from typing import Final, cast

from cdc.derive.fold.purity import BUILTINS, MODULES, REFUSED
from cdc.derive.fold.shape import APPLY
from cdc.errors import CdcError, ErrorKind

Apply = Callable[[dict[str, object] | None, dict[str, object]], object]
ARITHMETIC: Final = Context(prec=100)
"""In it a fold calculates with decimals, whatever the program around it has set: sums and products
of the lake's numbers are exact."""


class RefusedEventError(Exception):
    """Says why an event cannot be; a fold raises it as ``Refused(reason)``."""

    reason = ""

    def __init__(self, reason: object = "") -> None:
        super().__init__(reason)
        self.reason = str(reason)


def program(code: CodeType) -> Apply:
    """Return ``apply``; raises CONFIG where a statement outside a function fails.

    Lists and dictionaries outside functions cannot be changed afterwards, so that nothing is kept
    from one stream to the next.
    """
    namespace: dict[str, object] = {
        "__builtins__": {**BUILTINS, "__import__": _imported},
        "__name__": "wal2lake_fold",
        REFUSED: RefusedEventError,
    }
    try:
        exec(code, namespace)  # noqa: S102 - the definition is a program: docs/derived-tables.md
    except Exception as error:  # noqa: BLE001 - the code is a user's
        line = _line(error, code.co_filename)
        what = f"line {line} fails outside apply: {type(error).__name__}"
        raise CdcError(ErrorKind.CONFIG, what, remedy="correct it: try it with python") from None
    namespace.update({name: _fixed(value) for name, value in namespace.items()})
    return cast("Apply", namespace[APPLY])


def _imported(
    name: str,
    _globals: Mapping[str, object] | None = None,
    _locals: Mapping[str, object] | None = None,
    fromlist: tuple[str, ...] = (),
    level: int = 0,
) -> object:
    if name not in MODULES or level:
        raise ImportError(name)
    return __import__(name, fromlist=fromlist)


def _fixed(value: object) -> object:
    if isinstance(value, list):
        return tuple(value)
    return MappingProxyType(value) if type(value) is dict else value


def _line(error: Exception, file: str) -> int:
    """Return the last line of the file that was at work."""
    line, at = 1, error.__traceback__
    while at is not None:
        if at.tb_frame.f_code.co_filename == file:
            line = at.tb_lineno
        at = at.tb_next
    return line
