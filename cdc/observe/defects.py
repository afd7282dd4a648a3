"""Describe an error that is not a CdcError: its class, its codes and where it was raised.

Messages of engines quote values of rows: Spark's ``[CAST_INVALID_INPUT] The value 'secret' of the
type``, Postgres's ``Key (id)=(secret)``, the key of a KeyError. So no such message is ever written,
and none has to be searched for values: a description consists of names alone.
"""

import os
import traceback
from collections.abc import Iterator
from typing import Any, Final

from cdc.errors import CdcError

_DEEPEST: Final = 10
_PLACES: Final = ("schema_name", "table_name", "column_name", "constraint_name", "datatype_name")


def error_text(error: BaseException) -> str:
    """Return a description in one line without any row's value; a CdcError is given in full."""
    if isinstance(error, CdcError):
        return str(error)
    facts = [fact for fact in _facts(error) if fact]
    name = type(error).__name__
    return f"{name}: {', '.join(facts)}" if facts else name


def traceback_of(error: BaseException) -> str:
    """Return a traceback like Python's, causes first, with ``told`` in place of the messages."""
    chain = [error]
    while (earlier := _earlier(chain[-1])) is not None and earlier not in chain:
        chain.append(earlier)
    return "\n\nwhich led to\n\n".join(_without_causes(link) for link in reversed(chain))


def _earlier(error: BaseException) -> BaseException | None:
    return error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _without_causes(error: BaseException) -> str:
    frames = "".join(traceback.format_tb(error.__traceback__))
    inner = [error_text(member) for member in getattr(error, "exceptions", ())]
    return "\n".join([*([frames.rstrip("\n")] * bool(frames)), error_text(error), *inner])


def _facts(error: BaseException) -> Iterator[str]:
    if isinstance(error, OSError) and error.errno is not None:
        yield os.strerror(error.errno)
        yield str(error.filename or "")
    elif isinstance(error, AttributeError | NameError | ImportError):
        yield str(error.name or "")
    yield from _postgres_facts(error)
    yield from _kafka_facts(error)
    yield from _java_facts(
        getattr(error, "_origin", None) or getattr(error, "java_exception", None)
    )


def _postgres_facts(error: BaseException) -> Iterator[str]:
    """Yield the code and the names involved; message, detail and context may contain values."""
    yield str(getattr(error, "sqlstate", None) or "")
    names = (getattr(getattr(error, "diag", None), place, None) for place in _PLACES)
    yield ".".join(name for name in names if name)


def _kafka_facts(error: BaseException) -> Iterator[str]:
    first = error.args[0] if error.args else None
    if first is not None and type(first).__name__ == "KafkaError":
        yield str(first.name())


def _java_facts(throwable: Any) -> Iterator[str]:  # noqa: ANN401 - a py4j proxy
    """Yield class and condition of each of its causes, as long as the JVM answers."""
    for _ in range(_DEEPEST):
        if throwable is None:
            return
        try:
            name = str(throwable.getClass().getName())
            following = throwable.getCause()
        except Exception:  # noqa: BLE001 - the JVM no longer answers
            return
        condition = _condition(throwable)
        yield f"{name} [{condition}]" if condition else name
        throwable = following


def _condition(throwable: Any) -> str:  # noqa: ANN401 - as above
    try:
        return str(throwable.getCondition() or "")
    except Exception:  # noqa: BLE001 - only Spark's own throwables have a condition
        return ""
