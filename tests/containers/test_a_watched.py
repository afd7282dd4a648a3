"""A real Prometheus scrapes the job of the stack, and our alerts fire."""

from typing import Any

import httpx
import pytest

from tests.containers.stack import Stack, until_healthy
from tests.unit.client.test_observe_files import ALERTS
from tests.waiting import until

pytestmark = [pytest.mark.stack, pytest.mark.timeout(1800)]

SECONDS = 300
DELETES = 'wal2lake_table_events_total{operation="deletes",table="public.orders"}'


def asked(stack: Stack, path: str, **parameters: str) -> dict[str, Any]:
    """Return what Prometheus answers."""
    url = f"http://127.0.0.1:{stack.ports['prometheus']}/api/v1/{path}"
    answer = httpx.get(url, params=parameters).raise_for_status().json()
    return dict(answer["data"])


def values(stack: Stack, query: str) -> list[str]:
    return [str(row["value"][1]) for row in asked(stack, "query", query=query)["result"]]


def rules(stack: Stack) -> dict[str, dict[str, Any]]:
    """Return the alerts by their names."""
    found = asked(stack, "rules")["groups"]
    return {rule["name"]: rule for group in found for rule in group["rules"]}


def test_prometheus_has_what_the_job_tells(stack: Stack) -> None:
    stack.compose("--profile", "observe", "up", "--wait", "prometheus")
    until(lambda: bool(values(stack, DELETES)), SECONDS)

    page = httpx.get(f"http://127.0.0.1:{stack.ports['job']}/metrics").text
    [line] = [line for line in page.splitlines() if line.startswith(DELETES)]
    assert values(stack, DELETES) == [f"{float(line.split()[1]):g}"]
    assert values(stack, 'up{job="wal2lake"}') == ["1"]


def test_every_alert_can_be_evaluated_and_none_fires(stack: Stack) -> None:
    def evaluated() -> bool:
        return all(rule["health"] == "ok" for rule in rules(stack).values())

    until(evaluated, SECONDS)

    found = rules(stack)
    assert set(found) == {rule["alert"] for rule in ALERTS}
    assert {name for name, rule in found.items() if rule["state"] == "firing"} == set()


def test_a_job_that_is_gone_raises_an_alert(stack: Stack) -> None:
    stack.compose("stop", "job")
    until(lambda: rules(stack)["JobIsSilent"]["state"] == "firing", SECONDS)

    stack.compose("start", "job")
    until_healthy(stack, "job")
    until(lambda: rules(stack)["JobIsSilent"]["state"] == "inactive", SECONDS)
    stack.compose("--profile", "observe", "rm", "--stop", "--force", "prometheus")
