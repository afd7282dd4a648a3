"""What may be said of an error that is none of ours: its class, its codes, where it was raised.

An engine's own words quote values of rows: ``[CAST_INVALID_INPUT] The value 'secret' of the type``
of Spark, ``Key (id)=(secret)`` of Postgres, the key of a KeyError. So none of them is ever said,
and nothing has to be searched for what looks like a value: what is said is made of names alone.
"""

import os
import traceback
from collections.abc import Iterator
from typing import Any, Final

from cdc.errors import CdcError

_DEEPEST: Final = 10
_PLACES: Final = ("schema_name", "table_name", "column_name", "constraint_name", "datatype_name")


def told(error: BaseException) -> str:
    """The error in one line, without a value of a row; errors of ours are told whole."""
    if isinstance(error, CdcError):
        return str(error)
    facts = [fact for fact in _facts(error) if fact]
    name = type(error).__name__
    return f"{name}: {', '.join(facts)}" if facts else name


def traceback_of(error: BaseException) -> str:
    """As Python prints it, its causes first, with what is ``told`` in place of the messages."""
    chain = [error]
    while (earlier := _earlier(chain[-1])) is not None and earlier not in chain:
        chain.append(earlier)
    return "\n\nwhich led to\n\n".join(_one(each) for each in reversed(chain))


def _earlier(error: BaseException) -> BaseException | None:
    return error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _one(error: BaseException) -> str:
    frames = "".join(traceback.format_tb(error.__traceback__))
    inner = [told(each) for each in getattr(error, "exceptions", ())]
    return "\n".join([*([frames.rstrip("\n")] * bool(frames)), told(error), *inner])


def _facts(error: BaseException) -> Iterator[str]:
    if isinstance(error, OSError) and error.errno is not None:
        yield os.strerror(error.errno)
        yield str(error.filename or "")
    elif isinstance(error, AttributeError | NameError | ImportError):
        yield str(error.name or "")
    yield from _of_postgres(error)
    yield from _of_kafka(error)
    yield from _of_java(getattr(error, "_origin", None) or getattr(error, "java_exception", None))


def _of_postgres(error: BaseException) -> Iterator[str]:
    """Names of what it is about; message, detail and context may hold values."""
    yield str(getattr(error, "sqlstate", None) or "")
    names = (getattr(getattr(error, "diag", None), place, None) for place in _PLACES)
    yield ".".join(name for name in names if name)


def _of_kafka(error: BaseException) -> Iterator[str]:
    first = error.args[0] if error.args else None
    if first is not None and type(first).__name__ == "KafkaError":
        yield str(first.name())


def _of_java(throwable: Any) -> Iterator[str]:  # noqa: ANN401 - of the JVM, through py4j
    """Class and condition of each of its causes, as far as the JVM still answers."""
    for _ in range(_DEEPEST):
        if throwable is None:
            return
        try:
            name = str(throwable.getClass().getName())
            following = throwable.getCause()
        except Exception:  # noqa: BLE001 - what cannot be asked any more is left out
            return
        condition = _condition(throwable)
        yield f"{name} [{condition}]" if condition else name
        throwable = following


def _condition(throwable: Any) -> str:  # noqa: ANN401 - as above
    try:
        return str(throwable.getCondition() or "")
    except Exception:  # noqa: BLE001 - it is none of Spark's
        return ""
