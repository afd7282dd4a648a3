"""Turn the status into plain values, for ``status --json`` and for ``/status.json``."""

from dataclasses import asdict
from typing import Any

from cdc.client.status.status import Status
from cdc.client.status.status_findings import StatusFinding
from cdc.errors import POLICY
from cdc.events.values.lsn import format_lsn


def facts(now: Status, problems: list[StatusFinding]) -> dict[str, Any]:
    """Return the status and the findings as an object for JSON."""
    fields = asdict(now)
    fields["findings"] = [
        {**asdict(each), "kind": each.kind.value, "exit_code": POLICY[each.kind].exit_code}
        for each in problems
    ]
    fields["lsn"] = None if now.lsn is None else format_lsn(now.lsn)
    fields["published_at"] = now.published_at and now.published_at.isoformat()
    return fields
