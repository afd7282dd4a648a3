"""Generate the reference pages from the code: ``python -m cdc.cli.reference FOLDER``."""

import sys
import types
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin

from pydantic import SecretStr
from pydantic.fields import FieldInfo

from cdc.cli.reference import derived_page, types_page
from cdc.client.status.status_findings import IGNORED_BY_LIVE, MEANINGS, WORST_FIRST
from cdc.config import ENV_PREFIX, Config, Section
from cdc.config.source import Choice
from cdc.errors import MEANING, POLICY

INTRODUCTION = f"""\
# Configuration

Generated from `cdc/config/` by `python -m cdc.cli.reference docs/reference`; a test compares.

The configuration is one file, `wal2lake.yaml`. Relative paths in it are relative to the file. Every
key can also be set in the environment, which takes precedence: `{ENV_PREFIX}SOURCE__PASSWORD` is
`source.password`. In the environment, separate the items of a list by commas and write a mapping as
YAML. `wal2lake up` starts every server whose address is absent, on the machine it runs on.
"""

EXIT_CODES = """\
# Exit codes

Generated from `cdc/errors.py` by `python -m cdc.cli.reference docs/reference`; a test compares.

Every command exits with 0 when it has done what was asked, and otherwise with the code of the error
that it printed.

| code | kind | retrying can help |
|---|---|---|
"""

CHECKED: Final = """\

## What `status --check` ends with

`status --check` exits with 0 when all is well, and otherwise with the code of the worst finding.
The worst kind comes first below; an error that `wal2lake up` ended with comes before all of them,
with its own code. `status --live` does the same, but ignores the kinds marked below.

| code | kind | finding | `--live` |
|---|---|---|---|
"""

REASONS: Final = """\

## Reason codes

When something is broken between source, Kafka and lake, the message begins with a code in brackets:
in errors, in `status`, and in the ledger as the reason of a stopped table. The text after `remedy:`
says what to do.

| code | what is broken |
|---|---|
"""

TYPE_NAMES: Final[dict[Any, str]] = {
    str: "text",
    int: "integer",
    float: "number",
    bool: "`true` or `false`",
    Path: "path",
    SecretStr: "text, secret",
    Choice: "`drop`, `hash` or `{truncate: N}`",
}


def main() -> None:
    """Write every page into the folder that the command line names."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text)


def pages() -> dict[str, str]:
    """Return the text of every page by its file name."""
    return {
        "configuration.md": configuration(),
        "derived-sql.md": derived_page.derived_sql(),
        "exit-codes.md": exit_codes(),
        "types.md": types_page.types(),
    }


def configuration() -> str:
    """Return the page of all configuration keys, section by section."""
    own = {name: field for name, field in Config.model_fields.items() if not _section(field)}
    parts = [INTRODUCTION, _table("", own)]
    for name, field in Config.model_fields.items():
        section = _section(field)
        if section is not None:
            doc = f"{section.__doc__}\n\n" if section.__doc__ else ""
            parts.append(f"## {name}\n\n{doc}{_table(f'{name}.', section.model_fields)}")
    return "\n".join(parts)


def exit_codes() -> str:
    """Return the page of exit codes, findings of ``status`` and reason codes."""
    rows = sorted((policy.exit_code, kind.value, policy.retry) for kind, policy in POLICY.items())
    codes = "".join(
        f"| {code} | {kind.replace('_', ' ')} | {'yes' if retry else 'no'} |\n"
        for code, kind, retry in rows
    )
    checked = "".join(
        f"| {POLICY[kind].exit_code} | {kind.value.replace('_', ' ')} | {MEANINGS[kind]} "
        f"| {'ignored' if kind in IGNORED_BY_LIVE else ''} |\n"
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
    if get_origin(kind) is list:
        return f"list of {arguments[0]}"
    return f"mapping of {' to '.join(arguments)}"


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.default
    if value is None:
        return "absent"
    if value in ([], {}):
        return "empty"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _text(field: FieldInfo) -> str:
    """Return the docstring under the key on one line, with Markdown's code marks."""
    return " ".join((field.description or "").split()).replace("``", "`").replace("|", "\\|")
