"""Read writer schemas from the registry by the id at the start of every message."""

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
    """Reads each schema from the registry only once, because an id never changes its meaning."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._read_before: dict[int, str] = {}
        self._lock = threading.Lock()

    def schema(self, schema_id: int) -> str | None:
        """Return the schema's JSON in a form that every Avro reader accepts.

        Returns None if the registry does not have the id yet. Raises UNREACHABLE if it does not
        answer or is still loading its schemas, CONFIG if it refuses us.
        """
        with self._lock:
            if schema_id not in self._read_before and (text := self._read(schema_id)) is not None:
                self._read_before[schema_id] = readable_schema(text)
            return self._read_before.get(schema_id)

    def schemas(self, ids: Iterable[int]) -> dict[int, str]:
        """Return the schemas of those ids that the registry has."""
        texts = {schema_id: self.schema(schema_id) for schema_id in ids}
        return {schema_id: text for schema_id, text in texts.items() if text is not None}

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
                f"the schema registry at {http_client.without_login(self._url)} has no schema "
                f"{schema_id}",
                detail=str(error) if isinstance(error, _LoadingError) else type(error).__name__,
                remedy="start the registry, or correct registry.url",
            ) from None


def refuse_unknown(answer: httpx.Response, url: str) -> None:
    """Raise CONFIG if the registry rejects our credentials, or requires some."""
    http_client.refuse_unknown(
        answer,
        url,
        "the schema registry",
        "set registry.user, and registry.password or registry.password_file",
    )


class _LoadingError(Exception):
    """The registry has started but has not loaded all its schemas yet."""


def _get(registry: str, schema_id: int) -> str | None:
    """Return the schema, or None if the registry does not have it.

    An unknown id is requested twice, because its schema may have been loaded in between.
    """
    response = _request(registry, schema_id)
    if response.status_code == httpx.codes.NOT_FOUND:
        _refuse_loading(registry)
        response = _request(registry, schema_id)
    if response.status_code == httpx.codes.NOT_FOUND:
        _refuse_loading(registry)
        return None
    if response.status_code == httpx.codes.BAD_REQUEST:
        return _content(registry, schema_id)
    response.raise_for_status()
    return str(response.json()["schema"])


def _request(registry: str, schema_id: int) -> httpx.Response:
    response = http_client.get(
        registry, f"/apis/ccompat/v7/schemas/ids/{schema_id}", timeout=_SECONDS
    )
    refuse_unknown(response, registry)
    return response


def _refuse_loading(registry: str) -> None:
    """Raise if Apicurio is still reading its topic, when it answers that no schema exists."""
    ready = http_client.get(registry, "/health/ready", timeout=_SECONDS)
    if ready.status_code >= httpx.codes.INTERNAL_SERVER_ERROR:
        raise _LoadingError("it is not ready")


def _content(registry: str, schema_id: int) -> str:
    """Return the schema as the connector wrote it, if Apicurio cannot read it as Avro.

    That happens if a column has the default NaN or a table's name begins with a digit. Decoding
    never uses the defaults of a writer's schema, so all of them are left out.
    """
    path = f"/apis/registry/v2/ids/contentIds/{schema_id}"
    response = http_client.get(registry, path, timeout=_SECONDS)
    response.raise_for_status()
    return json.dumps(_without_defaults(response.json()))


def _without_defaults(schema: object) -> object:
    if isinstance(schema, list):
        return [_without_defaults(branch) for branch in schema]
    if isinstance(schema, dict):
        return {
            name: _without_defaults(value) for name, value in schema.items() if name != "default"
        }
    return schema


def _is_transient(error: BaseException) -> bool:
    if isinstance(error, httpx.HTTPStatusError):
        return error.response.status_code >= httpx.codes.INTERNAL_SERVER_ERROR
    return isinstance(error, httpx.TransportError | _LoadingError)
