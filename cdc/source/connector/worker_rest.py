"""The connector on a Kafka Connect worker, through the worker's REST interface."""

from collections.abc import Mapping
from typing import Any, Final

import httpx
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from cdc import http_client
from cdc.errors import CdcError, ErrorKind
from cdc.source.connector.status import ConnectorStatus, connector_status
from cdc.waiting import poll

_SECONDS: Final = 60  # a worker answers a request for a change only when it has validated it
_REBALANCE_SECONDS: Final = 60
_RESTART_SECONDS: Final = 10
_KEPT: Final = 400  # characters of a failure that are shown

PLACEHOLDER: Final = "unavailable.value.placeholder"
PASSWORD: Final = "database.password"  # noqa: S105 - the name of a setting


def create_stopped(connect_url: str, name: str, settings: Mapping[str, str]) -> None:
    """Create it without a task, to look at the position that one of its name left behind.

    A worker keeps the position of a connector that is deleted, and gives it to the next of that
    name. Does nothing when the connector exists.
    """
    body = {"name": name, "config": dict(settings), "initial_state": "STOPPED"}
    if configuration(connect_url, name) is None:
        _accepted(_request("POST", connect_url, "/connectors", json=body), name, settings)


def configure(connect_url: str, name: str, settings: Mapping[str, str]) -> bool:
    """Bring its configuration up to date; False when there was nothing to do.

    Raises SOURCE_NOT_READY with the worker's own words when it refuses the configuration.
    """
    if is_configured(connect_url, name, settings):
        return False
    path = f"/connectors/{name}/config"
    _accepted(_request("PUT", connect_url, path, json=dict(settings)), name, settings)
    return True


def is_configured(connect_url: str, name: str, settings: Mapping[str, str]) -> bool:
    """Whether the worker has it with these settings, and no others."""
    return configuration(connect_url, name) == {**settings, "name": name}


def configuration(connect_url: str, name: str) -> dict[str, str] | None:
    """As the worker has it; None when there is no such connector."""
    answer = _request("GET", connect_url, f"/connectors/{name}/config")
    if answer.status_code == httpx.codes.NOT_FOUND:
        return None
    return {str(key): str(value) for key, value in _checked(answer, "reading").json().items()}


def status(connect_url: str, name: str) -> ConnectorStatus | None:
    answer = _request("GET", connect_url, f"/connectors/{name}/status")
    if answer.status_code == httpx.codes.NOT_FOUND:
        return None
    return connector_status(_checked(answer, "the status of").json())


def offsets(connect_url: str, name: str, *, patience: float | None = None) -> dict[str, Any] | None:
    """What the connector has committed of its position; None before its first commit.

    With ``patience`` a worker is asked once, and given so many seconds.
    """
    answer = _request("GET", connect_url, f"/connectors/{name}/offsets", patience=patience)
    if answer.status_code == httpx.codes.NOT_FOUND:
        return None
    entries = _checked(answer, "the offsets of").json()["offsets"]
    return dict(entries[0]["offset"]) if entries else None


def restart(connect_url: str, name: str) -> None:
    """The connector and its failed tasks; returns when the old failure is told no more.

    A part that fails anew keeps its state, so that is waited for no longer than a few seconds.
    """
    path = f"/connectors/{name}/restart?includeTasks=true&onlyFailed=true"
    _checked(_request("POST", connect_url, path), "restarting")
    poll(
        lambda: status(connect_url, name),
        lambda found: found is None or not found.failed,
        every=0.1,
        seconds=_RESTART_SECONDS,
    )


def stop(connect_url: str, name: str) -> None:
    """End its task and keep its configuration; returns when the task is gone."""
    _checked(_request("PUT", connect_url, f"/connectors/{name}/stop"), "stopping")
    poll(
        lambda: status(connect_url, name),
        lambda found: found is None or not found.tasks,
        every=0.3,
        seconds=_REBALANCE_SECONDS,
    )


def resume(connect_url: str, name: str) -> None:
    _checked(_request("PUT", connect_url, f"/connectors/{name}/resume"), "resuming")


def forget_offsets(connect_url: str, name: str) -> None:
    """Of a stopped connector: its next start is a first one."""
    _checked(_request("DELETE", connect_url, f"/connectors/{name}/offsets"), "forgetting")


def delete(connect_url: str, name: str) -> None:
    answer = _request("DELETE", connect_url, f"/connectors/{name}")
    if answer.status_code != httpx.codes.NOT_FOUND:
        _checked(answer, "deleting")


def _request(
    method: str,
    connect_url: str,
    path: str,
    *,
    patience: float | None = None,
    **arguments: Any,  # noqa: ANN401
) -> httpx.Response:
    """Once more while the worker rebalances, for it answers 409 then: not with ``patience``."""
    attempts = Retrying(
        stop=stop_after_delay(_REBALANCE_SECONDS if patience is None else 0),
        wait=wait_fixed(0.5),
        retry=retry_if_result(lambda answer: answer.status_code == httpx.codes.CONFLICT),
        retry_error_callback=lambda state: state.outcome and state.outcome.result(),
    )
    try:
        answer: httpx.Response = attempts(
            http_client.request,
            method,
            f"{connect_url.rstrip('/')}{path}",
            timeout=_SECONDS if patience is None else patience,
            **arguments,
        )
    except httpx.HTTPError as error:
        raise CdcError(
            ErrorKind.UNREACHABLE,
            f"Kafka Connect at {http_client.shown(connect_url)} does not answer",
            detail=type(error).__name__,
            remedy="start it, or correct connect.url",
        ) from None
    refuse_unknown(answer, connect_url)
    return answer


def refuse_unknown(answer: httpx.Response, connect_url: str) -> None:
    """Raise CONFIG where the worker does not take our credentials, or wants some."""
    if answer.status_code == httpx.codes.UNAUTHORIZED:
        raise CdcError(
            ErrorKind.CONFIG,
            f"Kafka Connect at {http_client.shown(connect_url)} refuses our credentials",
            remedy="give connect.user, and connect.password or connect.password_file; an embedded "
            "worker is given its own by wal2lake up",
        )


def _accepted(answer: httpx.Response, name: str, settings: Mapping[str, str]) -> None:
    if answer.is_error:
        raise CdcError(
            ErrorKind.SOURCE_NOT_READY,
            f"Kafka Connect refuses connector {name}",
            detail=_words(answer, settings.get(PASSWORD, "")),
            remedy="wal2lake check",
        )


def _checked(answer: httpx.Response, doing: str) -> httpx.Response:
    if answer.is_error:
        raise CdcError(
            ErrorKind.SERVER_FAILED,
            f"{doing} the connector: Kafka Connect answers {answer.status_code}",
            detail=_words(answer, ""),
            remedy="see the worker's log",
        )
    return answer


def _words(answer: httpx.Response, secret: str) -> str:
    try:
        text = str(answer.json()["message"])
    except (ValueError, KeyError, TypeError):
        return ""
    lines = " ".join(line.strip() for line in text.splitlines() if line.strip())
    return (lines.replace(secret, "***") if secret else lines)[:_KEPT]
