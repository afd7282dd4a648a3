"""Control the connector through the REST interface of its Kafka Connect worker.

Every function raises UNREACHABLE if the worker does not answer, CONFIG if it refuses our
credentials, and SERVER_FAILED if it answers with another error.
"""

from collections.abc import Mapping
from typing import Any, Final

import httpx
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from cdc import http_client
from cdc.errors import CdcError, ErrorKind
from cdc.source.connector.connector_status import ConnectorStatus, connector_status
from cdc.waiting import poll

_SECONDS: Final = 60  # a worker validates a configuration before it answers
_REBALANCE_SECONDS: Final = 60
_RETRIABLE: Final = "can be safely retried"
"""Of Kafka Connect's own message (DistributedHerder.writeToConfigTopicAsLeader)."""
_RESTART_SECONDS: Final = 10
_MAX_LENGTH: Final = 400  # characters of a failure that are shown

PLACEHOLDER: Final = "unavailable.value.placeholder"
PASSWORD: Final = "database.password"  # noqa: S105 - the name of a setting


def create_stopped(connect_url: str, name: str, settings: Mapping[str, str]) -> None:
    """Create the connector in state STOPPED, so that an inherited position can be inspected.

    A worker keeps the position of a deleted connector, and gives it to the next one of that name.
    Does nothing if the connector exists. Raises SOURCE_NOT_READY if the worker refuses it.
    """
    body = {"name": name, "config": dict(settings), "initial_state": "STOPPED"}
    if configuration(connect_url, name) is None:
        _accepted(_request("POST", connect_url, "/connectors", json=body), name, settings)


def configure(connect_url: str, name: str, settings: Mapping[str, str]) -> bool:
    """Update the connector's configuration; return False if it was up to date.

    Raises SOURCE_NOT_READY with the worker's message if it refuses the configuration.
    """
    if is_configured(connect_url, name, settings):
        return False
    path = f"/connectors/{name}/config"
    _accepted(_request("PUT", connect_url, path, json=dict(settings)), name, settings)
    return True


def is_configured(connect_url: str, name: str, settings: Mapping[str, str]) -> bool:
    """Return whether the connector exists with exactly these settings."""
    return configuration(connect_url, name) == {**settings, "name": name}


def configuration(connect_url: str, name: str) -> dict[str, str] | None:
    """Return the connector's current configuration, or None if there is no such connector."""
    answer = _request("GET", connect_url, f"/connectors/{name}/config")
    if answer.status_code == httpx.codes.NOT_FOUND:
        return None
    return {
        str(key): str(value)
        for key, value in _checked(answer, "reading the configuration of").json().items()
    }


def status(connect_url: str, name: str) -> ConnectorStatus | None:
    """Return the connector's status, or None if there is no such connector."""
    answer = _request("GET", connect_url, f"/connectors/{name}/status")
    if answer.status_code == httpx.codes.NOT_FOUND:
        return None
    return connector_status(_checked(answer, "reading the status of").json())


def offsets(connect_url: str, name: str, *, patience: float | None = None) -> dict[str, Any] | None:
    """Return the connector's last committed position; None before its first commit.

    With ``patience`` the worker is asked only once, and has so many seconds to answer.
    """
    answer = _request("GET", connect_url, f"/connectors/{name}/offsets", patience=patience)
    if answer.status_code == httpx.codes.NOT_FOUND:
        return None
    entries = _checked(answer, "reading the offsets of").json()["offsets"]
    return dict(entries[0]["offset"]) if entries else None


def restart(connect_url: str, name: str) -> None:
    """Restart the failed connector or tasks; return once the old failure is no longer reported.

    A part that fails again keeps its state, so the wait lasts only a few seconds.
    """
    path = f"/connectors/{name}/restart?includeTasks=true&onlyFailed=true"
    _checked(_request("POST", connect_url, path), "restarting")
    poll(
        lambda: status(connect_url, name),
        lambda now: now is None or not now.failed,
        every=0.1,
        seconds=_RESTART_SECONDS,
    )


def stop(connect_url: str, name: str) -> None:
    """Stop the connector's task and keep its configuration; return once the task is gone."""
    _checked(_request("PUT", connect_url, f"/connectors/{name}/stop"), "stopping")
    poll(
        lambda: status(connect_url, name),
        lambda now: now is None or not now.tasks,
        every=0.3,
        seconds=_REBALANCE_SECONDS,
    )


def resume(connect_url: str, name: str) -> None:
    """Start a stopped or paused connector, without waiting for its task."""
    _checked(_request("PUT", connect_url, f"/connectors/{name}/resume"), "resuming")


def forget_offsets(connect_url: str, name: str) -> None:
    """Delete the position of a stopped connector, so that it starts from scratch."""
    _checked(_request("DELETE", connect_url, f"/connectors/{name}/offsets"), "resetting")


def delete(connect_url: str, name: str) -> None:
    """Delete the connector if it exists; the worker keeps its position."""
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
    """Send a request. Without ``patience``, repeat it while the worker cannot do it for now."""
    attempts = Retrying(
        stop=stop_after_delay(_REBALANCE_SECONDS if patience is None else 0),
        wait=wait_fixed(0.5),
        retry=retry_if_result(_is_for_now),
        retry_error_callback=lambda state: state.outcome and state.outcome.result(),
    )
    try:
        answer: httpx.Response = attempts(
            http_client.request,
            method,
            connect_url,
            path,
            timeout=_SECONDS if patience is None else patience,
            **arguments,
        )
    except httpx.HTTPError as error:
        raise _silent(connect_url, error) from None
    refuse_unknown(answer, connect_url)
    return answer


def _is_for_now(answer: httpx.Response) -> bool:
    """Return whether the same request may be granted soon.

    A worker answers 409 while it rebalances, and says of another error that a request "can be
    safely retried": when another producer of its settings' topic has taken its place, for instance.
    """
    is_retriable = answer.is_server_error and _RETRIABLE in answer.text
    return is_retriable or answer.status_code == httpx.codes.CONFLICT


def _silent(connect_url: str, error: httpx.HTTPError) -> CdcError:
    return CdcError(
        ErrorKind.UNREACHABLE,
        f"Kafka Connect at {http_client.without_login(connect_url)} does not answer",
        detail=type(error).__name__,
        remedy="start Kafka Connect, or correct connect.url",
    )


def refuse_unknown(answer: httpx.Response, connect_url: str) -> None:
    """Raise CONFIG if the worker rejects our credentials, or requires some."""
    http_client.refuse_unknown(
        answer,
        connect_url,
        "Kafka Connect",
        "set connect.user, and connect.password or connect.password_file; an embedded worker gets "
        "its own from wal2lake up",
    )


def _accepted(answer: httpx.Response, name: str, settings: Mapping[str, str]) -> None:
    if answer.is_error:
        raise CdcError(
            ErrorKind.SOURCE_NOT_READY,
            f"Kafka Connect refuses connector {name}",
            detail=_message(answer, settings.get(PASSWORD, "")),
            remedy="run wal2lake check",
        )


def _checked(answer: httpx.Response, doing: str) -> httpx.Response:
    if answer.is_error:
        raise CdcError(
            ErrorKind.SERVER_FAILED,
            f"{doing} the connector: Kafka Connect answers {answer.status_code}",
            detail=_message(answer, ""),
            remedy="see the worker's log",
        )
    return answer


def _message(answer: httpx.Response, secret: str) -> str:
    try:
        text = str(answer.json()["message"])
    except (ValueError, KeyError, TypeError):
        return ""
    lines = " ".join(line.strip() for line in text.splitlines() if line.strip())
    return (lines.replace(secret, "***") if secret else lines)[:_MAX_LENGTH]
