"""Structures as the source would note them, made by hand."""

import json
from typing import Any

from cdc.events.structure.structure import Structure, parse


def column(number: int, name: str, kind: str = "int4", **more: Any) -> dict[str, Any]:  # noqa: ANN401
    """``kind`` as in the catalogue; ``_int4`` is an array of it."""
    element = kind.removeprefix("_") if kind.startswith("_") else ""
    return {
        "number": number,
        "name": name,
        "type": kind,
        "kind": "b",
        "modifier": -1,
        "element": element,
        "element_kind": "b" if element else "",
        "domain": "",
        "dimensions": 1 if element else 0,
        "not_null": False,
        "generated": False,
        "missing": None,
        "default": False,
        "labels": None,
        "parts": "",
        **more,
    }


def note(*columns: dict[str, Any], **more: Any) -> str:  # noqa: ANN401
    """The text of a structure; its key is the first column unless something else is said."""
    return json.dumps(
        {
            "oid": 16400,
            "schema": "shop",
            "table": "orders",
            "kind": "r",
            "identity": "d",
            "primary_key": [columns[0]["name"]] if columns else [],
            "identity_index": [],
            "filenode": 16400,
            "columns": list(columns),
            **more,
        }
    )


def structure(*columns: dict[str, Any], **more: Any) -> Structure:  # noqa: ANN401
    return parse(note(*columns, **more))


def numeric(precision: int, scale: int) -> dict[str, Any]:
    """Return the type of ``numeric(precision, scale)`` for ``column``."""
    return {"kind": "numeric", "modifier": (precision << 16 | scale & 0x7FF) + 4}


def varchar(length: int) -> dict[str, Any]:
    return {"kind": "varchar", "modifier": length + 4}
