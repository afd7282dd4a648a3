"""Names the failure of an object store for a person, whichever library has met it.

Only obstore's errors are told apart by their class. delta-rs, Arrow and Spark's connector ask the
store too, and what they raise is of classes that mean anything: it is known by its text.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from cdc.errors import CdcError, ErrorKind
from cdc.lake.files.file_store import StoreError
from cdc.observe.defects import error_text

_OF_A_STORE: Final = re.compile(r"Generic S3 error|Error performing [A-Z]+ http|AWS Error [A-Z]")
_ANSWERED: Final = re.compile(r"\b404 Not Found\b|\balready exists\b")
"""What a store says that has answered."""
_STATUS: Final = re.compile(r"\b[45]\d\d [A-Z][a-z]+(?: [A-Z][a-z]+)*|AWS Error [A-Z_]+")
_OF_JAVA: Final = re.compile(r"org\.apache\.hadoop\.fs\.s3a\.|software\.amazon\.awssdk\.")
_ABSENT: Final = "FileNotFoundException"


def store_error(error: BaseException) -> StoreError | None:
    """Return what an error says of an object store that does not answer; None for any other.

    Nothing of what the store has said is in it but a status: the rest may repeat what was sent.
    """
    if isinstance(error, StoreError):
        return error
    if isinstance(error, CdcError | FileNotFoundError | FileExistsError):
        return None
    text, told = str(error), error_text(error)
    if _OF_A_STORE.search(text) and not _ANSWERED.search(text):
        status = _STATUS.search(text)
        said = status[0] if status else type(error).__name__
        return StoreError(f"no answer of the object store ({said})")
    if _OF_JAVA.search(told) and _ABSENT not in told:
        return StoreError(f"no answer of the object store ({told})")
    return None


def refuse_silence(error: BaseException) -> None:
    """Raise StoreError if an error is of a store that does not answer: no table is at fault."""
    if (silence := store_error(error)) is not None:
        raise silence from error


def unreachable(error: BaseException) -> CdcError | None:
    """Return the error for a person, UNREACHABLE: whoever tries again later can succeed."""
    silence = store_error(error)
    if silence is None:
        return None
    return CdcError(
        ErrorKind.UNREACHABLE,
        "the object store of the lake does not do what is asked",
        detail=str(silence),
        remedy="see docs/object-store.md; what had been committed is whole",
    )


@contextmanager
def store_errors_named() -> Iterator[None]:
    """Raise UNREACHABLE where an object store does not answer."""
    try:
        yield
    except Exception as error:
        if (named := unreachable(error)) is None:
            raise
        raise named from error
