"""Names the failure of an object store for a person."""

from collections.abc import Iterator
from contextlib import contextmanager

from cdc.errors import CdcError, ErrorKind
from cdc.lake.files.file_store import StoreError


@contextmanager
def store_errors_named() -> Iterator[None]:
    """Raise UNREACHABLE for a StoreError: whoever tries again later can succeed."""
    try:
        yield
    except StoreError as error:
        raise CdcError(
            ErrorKind.UNREACHABLE,
            "the object store of the lake does not do what is asked",
            detail=str(error),
            remedy="see docs/object-store.md; what had been committed is whole",
        ) from error
