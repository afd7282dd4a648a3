"""Writes the schema of the chart's values: ``python -m tools.kubernetes.values_schema``.

Of ``deploy/chart/values.schema.json`` the part that describes ``config`` is made from the
product's own configuration (``cdc.config``), so that Helm refuses what the job would refuse. It is
stricter in what is about secrets: a ConfigMap must not hold one.

Where a value may be a secret, the schema says what it must not be: Helm quotes a value that does
not match a pattern.
"""

import json
from pathlib import Path
from typing import Any, Final

from cdc.config import Config

FILE: Final = Path(__file__).resolve().parents[2] / "deploy" / "chart" / "values.schema.json"
Schema = dict[str, Any]

OF_THE_CHART: Final = {"Config": ("state_dir", "monitor", "stack")}
"""What is no value: the chart sets the first two, and starts no embedded server."""
OF_OTHERS: Final = {
    "Config": ["source", "kafka", "registry", "lake"],
    "Source": ["url", "tables"],
    "Kafka": ["bootstrap_servers"],
    "Registry": ["url"],
}
"""Sections and keys without which an embedded server would be started."""
REFERENCE: Final = r"^\$\{[^}]+\}$"
LOGIN: Final = "^[a-z0-9+.-]+://[^/?]*@"
PASSWORD: Final = "(?i)(^[a-z0-9+.-]+://[^/?@]*:[^/?]*@|[?&](ssl)?password=)"  # noqa: S105 - how one is found
NAMES: Final = "(?i)(secret|password|token|(access|account|private)[._]?key)"
LAKE: Final = "^(/lake(/[^/]+)*|[a-z][a-z0-9+.-]*://.+)$"


def text() -> str:
    """Return the file as it should be, from what it says of the other values."""
    schema: Schema = json.loads(FILE.read_text())
    own = {name: one for name, one in schema["definitions"].items() if name[0].islower()}
    schema["definitions"] = {**own, **_sections()}
    return json.dumps(schema, indent=2) + "\n"


def _sections() -> dict[str, Schema]:
    made = Config.model_json_schema(ref_template="#/definitions/{model}")
    sections = made.pop("$defs")
    sections.pop("Stack")
    sections.pop("Monitor")
    found = {"Config": made, **sections}
    return {name: _section(name, found[name]) for name in sorted(found)}


def _section(name: str, schema: Schema) -> Schema:
    absent = OF_THE_CHART.get(name, ())
    keys = {
        key: _key(f"{name}.{key}", one)
        for key, one in schema["properties"].items()
        if key not in absent and not _is_secret(one)
    }
    return {
        "type": "object",
        "additionalProperties": False,
        "required": OF_OTHERS.get(name, schema.get("required", [])),
        "properties": keys,
    }


def _is_secret(key: Schema) -> bool:
    """Return whether the value of a key is a secret, which pydantic never writes down."""
    return any(one.get("writeOnly") for one in [key, *key.get("anyOf", [])])


def _key(name: str, key: Schema) -> Schema:
    """Return a key's schema without what only pydantic understands, and stricter."""
    kept = {word: value for word, value in key.items() if word not in {"title", "format"}}
    if "anyOf" in kept:
        kept["anyOf"] = [{w: v for w, v in one.items() if w != "format"} for one in kept["anyOf"]]
    return {**kept, **_stricter(name)}


def _stricter(name: str) -> Schema:
    match name.partition(".")[2]:
        case "conf":
            return {"propertyNames": {"not": {"pattern": NAMES}}}
        case "path":
            return {"pattern": LAKE, "not": {"pattern": PASSWORD}}
        case key if key.endswith("_password"):
            return {"not": {"type": "string", "not": {"pattern": REFERENCE}}}
        case key if name == "Source.url" or key == "source_url":
            return {"not": {"type": "string", "pattern": PASSWORD}}
        case key if key == "url" or key.endswith("_url"):
            return {"not": {"type": "string", "pattern": LOGIN}}
        case _:
            return {}


if __name__ == "__main__":
    FILE.write_text(text())
