"""A table before a change of its structure, and short ways to write the change and its steps."""

from typing import Any

from cdc.events.structure.derive_steps import derive_steps
from cdc.events.structure.steps import Step, Stop
from tests.events.structures import column, structure

ID = column(1, "id", "int8", not_null=True)
OLD = structure(ID, column(2, "a", "text"), column(3, "b"))
A, B = column(2, "a", "text"), column(3, "b")


def enum(number: int, name: str, **labels: str) -> dict[str, Any]:
    """Describe an enum column; each label is given under its OID, as in ``_7="sad"``."""
    by_oid = {oid.removeprefix("_"): label for oid, label in labels.items()}
    return column(number, name, "mood") | {"kind": "e", "labels": by_oid}


def of(*columns: dict[str, Any], **more: Any) -> tuple[Step, ...]:  # noqa: ANN401
    """Return the steps from OLD to a table with these columns beside the key."""
    flags = {name: more.pop(name) for name in ("rewrite", "converted", "append") if name in more}
    return derive_steps(OLD, structure(ID, *columns, **more), **flags)


def stop(found: tuple[Step, ...]) -> str:
    """Return the reason of the only step, which must be a stop with a remedy."""
    (only,) = found
    assert isinstance(only, Stop)
    assert only.remedy
    return only.reason
