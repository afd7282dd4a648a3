"""Digests rows: equal for rows whose values print alike, and for no others."""

from collections.abc import Sequence

from cdc.derive.engine.output_types import Output


def digest(outputs: Sequence[Output]) -> str:
    """Return an expression over these columns that is equal for equal rows only.

    The length goes before each value, so that no value reads like the end of another.
    """
    values = (_text(output.quoted, output.type) for output in outputs)
    parts = (f"coalesce(length({value}) || ':' || {value}, 'N')" for value in values)
    return f"sha256({' || '.join(parts)})"


def _text(name: str, kind: str) -> str:
    if kind.endswith("[]"):
        return f"to_json({name})::VARCHAR"
    return f"hex({name})" if kind == "BLOB" else f"{name}::VARCHAR"
