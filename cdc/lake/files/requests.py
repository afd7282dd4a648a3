"""Makes a request to an object store until there is an answer."""

from collections.abc import Callable
from typing import TypeVar

from obstore import exceptions as answers
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_random_exponential

from cdc.lake.files.file_store import StoreError
from cdc.lake.files.s3_access import PATIENCE

_Answer = TypeVar("_Answer")


class NoAnswerError(StoreError):
    """Says that nobody knows what became of a request; it is made again."""


def again(request: Callable[[], _Answer], what: str) -> _Answer:
    """Return the answer to a request, made again for ``PATIENCE`` while there is none.

    ``what`` names the request. Raises FileNotFoundError, StoreError without what the store has
    said, which may repeat what was sent, and obstore's errors of a condition.
    """
    attempts = Retrying(
        retry=retry_if_exception_type(NoAnswerError),
        stop=stop_after_delay(PATIENCE),
        wait=wait_random_exponential(multiplier=0.05, max=5),
        reraise=True,
    )
    answer: _Answer = attempts(once, request, what)
    return answer


def once(request: Callable[[], _Answer], what: str) -> _Answer:
    """Return the answer to a request that is made once; raises what ``again`` does."""
    try:
        return request()
    except (answers.AlreadyExistsError, answers.PreconditionError):
        raise
    except (answers.PermissionDeniedError, answers.UnauthenticatedError) as error:
        raise StoreError(f"{what}: the object store forbids it ({_name(error)})") from None
    except (FileNotFoundError, answers.NotFoundError):
        raise FileNotFoundError(what) from None
    except answers.BaseError as error:
        raise NoAnswerError(f"{what}: no answer of the object store ({_name(error)})") from None


def _name(error: Exception) -> str:
    return type(error).__name__
