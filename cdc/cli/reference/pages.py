"""The reference pages that are made from the code: ``python -m cdc.cli.reference FOLDER``."""

import sys
import types
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin

from pydantic import SecretStr
from pydantic.fields import FieldInfo

from cdc.cli.reference import types_page
from cdc.client.status.findings import FOUND, PASSING, WORST_FIRST
from cdc.config import ENV_PREFIX, Config, Section
from cdc.errors import MEANING, POLICY

INTRODUCTION = f"""\
# Configuration

Made from `cdc/config.py` by `python -m cdc.cli.reference docs/reference`; a test compares.

One file, `wal2lake.yaml`. Relative paths are relative to it. Every key can also come from the
environment, which wins over the file: `{ENV_PREFIX}SOURCE__PASSWORD` is `source.password`. There,
lists are separated by commas and mappings are written as YAML. A server whose address is absent is
started by `wal2lake up` on the machine it runs on.
"""

EXIT_CODES = """\
# Exit codes

Made from `cdc/errors.py` by `python -m cdc.cli.reference docs/reference`; a test compares.

Every command ends with 0 when it did what it was asked, and otherwise with the code of the error
it printed.

| code | kind | trying again can help |
|---|---|---|
"""

CHECKED: Final = """\

## What `status --check` ends with

0 where all is well, else the code of the worst thing it found, the worst first below. An error that
`wal2lake up` ended with comes before them with its own code. `status --live` is the same without
what is marked as passed over.

| code | kind | found | `--live` |
|---|---|---|---|
"""

REASONS: Final = """\

## Reason codes

What was found broken between source, Kafka and lake has a code, in brackets before the message: in
errors, in `status` and in the ledger beside a stopped table. What to do stands after `remedy:`.

| code | what was found |
|---|---|
"""

TYPE_NAMES: Final = {
    str: "text",
    int: "integer",
    float: "number",
    Path: "path",
    SecretStr: "text, secret",
}


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text)


def pages() -> dict[str, str]:
    """File name -> text."""
    return {
        "configuration.md": configuration(),
        "exit-codes.md": exit_codes(),
        "types.md": types_page.types(),
    }


def configuration() -> str:
    own = {name: field for name, field in Config.model_fields.items() if not _section(field)}
    parts = [INTRODUCTION, _table("", own)]
    for name, field in Config.model_fields.items():
        section = _section(field)
        if section is not None:
            doc = f"{section.__doc__}\n\n" if section.__doc__ else ""
            parts.append(f"## {name}\n\n{doc}{_table(f'{name}.', section.model_fields)}")
    return "\n".join(parts)


def exit_codes() -> str:
    rows = sorted((policy.exit_code, kind.value, policy.retry) for kind, policy in POLICY.items())
    codes = "".join(
        f"| {code} | {kind.replace('_', ' ')} | {'yes' if retry else 'no'} |\n"
        for code, kind, retry in rows
    )
    checked = "".join(
        f"| {POLICY[kind].exit_code} | {kind.value.replace('_', ' ')} | {FOUND[kind]} "
        f"| {'passed over' if kind in PASSING else ''} |\n"
        for kind in WORST_FIRST
    )
    reasons = "".join(f"| `{code.value}` | {meaning} |\n" for code, meaning in MEANING.items())
    return EXIT_CODES + codes + CHECKED + checked + REASONS + reasons


def _section(field: FieldInfo) -> type[Section] | None:
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, Section) else None


def _table(prefix: str, fields: dict[str, FieldInfo]) -> str:
    rows = [
        f"| `{prefix}{name}` | {_type(field.annotation)} | {_default(field)} | {_text(field)} |\n"
        for name, field in fields.items()
    ]
    return "| key | value | default | meaning |\n|---|---|---|---|\n" + "".join(rows)


def _type(kind: Any) -> str:  # noqa: ANN401 - annotations have no common type
    if kind in TYPE_NAMES:
        return TYPE_NAMES[kind]
    if isinstance(kind, types.UnionType):
        return next(_type(part) for part in get_args(kind) if part is not types.NoneType)
    if get_origin(kind) is Literal:
        return ", ".join(f"`{value}`" for value in get_args(kind))
    arguments = [_type(part) for part in get_args(kind)]
    return f"list of {arguments[0]}" if get_origin(kind) is list else f"{' to '.join(arguments)}"


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.default
    if value is None:
        return "absent"
    if value in ([], {}):
        return "empty"
    return f"`{value}`"


def _text(field: FieldInfo) -> str:
    """The docstring under the key, on one line, with Markdown's code marks."""
    return " ".join((field.description or "").split()).replace("``", "`").replace("|", "\\|")
