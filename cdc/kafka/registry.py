"""Writer schemas by the id that stands in front of every message."""

import json
import threading
from collections.abc import Callable, Iterable
from typing import Final

import httpx
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential

from cdc import http_client
from cdc.errors import CdcError, ErrorKind
from cdc.events.names import readable_schema

SchemaLookup = Callable[[Iterable[int]], dict[int, str]]
"""Writer schemas by id; an id that the registry does not know is missing from the answer."""
_SECONDS: Final = 10
_ATTEMPTS: Final = 4


class RegistryClient:
    """An id never changes its meaning, so what was read once is kept for ever."""

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")
        self._known: dict[int, str] = {}
        self._lock = threading.Lock()

    def schema(self, schema_id: int) -> str | None:
        """The schema's JSON, as every reader of Avro takes it.

        None when the registry has no such id, which may change. Raises UNREACHABLE when it gives
        no answer, or is still reading its schemas back.
        """
        with self._lock:
            if schema_id not in self._known and (found := self._read(schema_id)) is not None:
                self._known[schema_id] = readable_schema(found)
            return self._known.get(schema_id)

    def schemas(self, ids: Iterable[int]) -> dict[int, str]:
        """Those of the ids that the registry knows."""
        found = {schema_id: self.schema(schema_id) for schema_id in ids}
        return {schema_id: text for schema_id, text in found.items() if text is not None}

    def _read(self, schema_id: int) -> str | None:
        attempts = Retrying(
            stop=stop_after_attempt(_ATTEMPTS),
            wait=wait_exponential(0.2),
            retry=retry_if_exception(_is_transient),
            reraise=True,
        )
        try:
            return attempts(_get, self._url, schema_id)
        except (httpx.HTTPError, _LoadingError, ValueError, KeyError) as error:
            raise CdcError(
                ErrorKind.UNREACHABLE,
                f"the schema registry at {http_client.shown(self._url)} has no schema {schema_id}",
                detail=str(error) if isinstance(error, _LoadingError) else type(error).__name__,
                remedy="start it, or correct registry.url",
            ) from None


class _LoadingError(Exception):
    """The registry has started, and does not know all that it keeps yet."""


def _get(registry: str, schema_id: int) -> str | None:
    """Asked again before it is unknown: what it is may have been loaded in between."""
    response = _asked(registry, schema_id)
    if response.status_code == httpx.codes.NOT_FOUND:
        _refuse_loading(registry)
        response = _asked(registry, schema_id)
    if response.status_code == httpx.codes.NOT_FOUND:
        _refuse_loading(registry)
        return None
    if response.status_code == httpx.codes.BAD_REQUEST:
        return _content(registry, schema_id)
    response.raise_for_status()
    return str(response.json()["schema"])


def _asked(registry: str, schema_id: int) -> httpx.Response:
    return http_client.get(f"{registry}/apis/ccompat/v7/schemas/ids/{schema_id}", timeout=_SECONDS)


def _refuse_loading(registry: str) -> None:
    """Apicurio answers while it reads its topic: every schema is unknown to it then."""
    ready = http_client.get(f"{registry}/health/ready", timeout=_SECONDS)
    if ready.status_code >= httpx.codes.INTERNAL_SERVER_ERROR:
        raise _LoadingError("it is not ready")


def _content(registry: str, schema_id: int) -> str:
    """What the connector has written, where Apicurio itself cannot read it as Avro.

    A column's default of NaN makes such a schema, and a table's name that begins with a digit.
    Nobody decodes by defaults of a writer's schema, so all of them are left out.
    """
    url = f"{registry}/apis/registry/v2/ids/contentIds/{schema_id}"
    response = http_client.get(url, timeout=_SECONDS)
    response.raise_for_status()
    return json.dumps(_without_defaults(response.json()))


def _without_defaults(schema: object) -> object:
    if isinstance(schema, list):
        return [_without_defaults(one) for one in schema]
    if isinstance(schema, dict):
        kept = {name: value for name, value in schema.items() if name != "default"}
        return {name: _without_defaults(value) for name, value in kept.items()}
    return schema


def _is_transient(error: BaseException) -> bool:
    if isinstance(error, httpx.HTTPStatusError):
        return error.response.status_code >= httpx.codes.INTERNAL_SERVER_ERROR
    return isinstance(error, httpx.TransportError | _LoadingError)
