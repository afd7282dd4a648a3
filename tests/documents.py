"""Find names in the Markdown documents that do not exist: links, commands, options, keys, files.

Each check takes a document as text and returns the names in it that do not exist, so that a test
of the check can pass a document with a mistake.
"""

import re
import types
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import typer
from typer.core import TyperGroup

from cdc.cli import COMMANDS, FILES
from cdc.config import ENV_PREFIX, Config, Section
from cdc.errors import Reason

ROOT: Final = Path(__file__).resolve().parent.parent
DOCUMENTS: Final = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("connectors/*.md")]
)
WIDTH: Final = 100
OF_OTHERS: Final = frozenset(
    {"spark.authenticate", "source.snapshot", "source.ts_ms", "source.lsn", "source.sequence"}
)
"""Names that look like keys of ours: a setting of Spark's, fields of the connector's events."""

_FENCE: Final = re.compile(r"^```.*?\n(.*?)^```", re.MULTILINE | re.DOTALL)
_SPAN: Final = re.compile(r"`([^`]+)`")
_LINK: Final = re.compile(r"\]\(([^)\s]+)\)")
_COMMAND: Final = re.compile(
    r"(?<![\w./-])(?<!slot )(?<!schema )(?<!publication )(?:\.venv/bin/)?"
    r"wal2lake ([a-z][a-z-]*)(?=([^\n]*))"
)
_ENDS: Final = re.compile(r"\s#|&&|[;,]|\bwal2lake\b")
_OPTION: Final = re.compile(r"(?<![\w-])(--?[a-z][a-z-]*)")
_KEY: Final = re.compile(r"(?:source|lake|kafka|connect|registry|spark|job|monitor|stack)\.[a-z_]+")
_FILE_ENDS: Final = ("sql", "md", "py", "json", "log")
_FOLDERS: Final = ("cdc/", "tests/", "docs/", "connectors/", "jobs/", "bench/", ".ci/")
_PATH: Final = re.compile(
    r"(?<![\w./<>-])((?:cdc|tests|docs|connectors|jobs|bench|\.ci)/[\w./{},*-]*)"
)
_TEST_FILE: Final = re.compile(r"(?<![\w./])([a-z_]\w*\.py)(?:::(\w+))?")


def spans(document: str) -> list[str]:
    """Return the inline code of a document, each span on one line."""
    return [" ".join(span.split()) for span in _SPAN.findall(_FENCE.sub("", document))]


def code(document: str) -> str:
    """Return all code of a document, one line each."""
    return "\n".join([*_FENCE.findall(document), *spans(document)])


def anchors(document: str) -> set[str]:
    """Return the anchors that GitHub gives the headings of a document."""
    headings = re.findall(r"^#+ +(.+)$", _FENCE.sub("", document), re.MULTILINE)
    return {
        re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in headings
    }


def broken_links(path: Path, document: str) -> list[str]:
    """Return the links whose file or heading does not exist."""
    return [
        link for link in _LINK.findall(document) if "://" not in link and not _leads(path, link)
    ]


def _leads(path: Path, link: str) -> bool:
    name, _, anchor = link.partition("#")
    target = path.parent / name if name else path
    if not target.exists():
        return False
    return not anchor or anchor in anchors(target.read_text())


def unknown_commands(document: str) -> list[str]:
    """Return calls of commands, subcommands or options that do not exist in wal2lake."""
    return [bad for name, rest in _COMMAND.findall(code(document)) for bad in _unknown(name, rest)]


def _unknown(name: str, rest: str) -> Iterator[str]:
    if name not in COMMANDS:
        yield name
        return
    command = commands()[name]
    words = _ENDS.split(re.sub(r'"[^"]*"|\'[^\']*\'', " ", rest))[0]
    if isinstance(command, TyperGroup):
        sub = words.split()[:1]
        if sub and not sub[0].startswith("-"):
            if sub[0] not in command.commands:
                yield f"{name} {sub[0]}"
                return
            name, command = f"{name} {sub[0]}", command.commands[sub[0]]
    known = options(command)
    yield from (f"{name} {option}" for option in _OPTION.findall(words) if option not in known)


@cache
def commands() -> Mapping[str, Any]:
    """Return the commands of wal2lake with their options."""
    return {name: _command(name) for name in COMMANDS}


def _command(name: str) -> Any:  # noqa: ANN401 - typer's own kind of command
    function = name.replace("-", "_")
    target = getattr(import_module(f"cdc.cli.{FILES.get(name, function)}"), function)
    if not isinstance(target, typer.Typer):
        single = typer.Typer(add_completion=False)
        single.command(name)(target)
        target = single
    return typer.main.get_command(target)


def options(command: Any) -> set[str]:  # noqa: ANN401 - typer's own kind of command
    """Return a command's options, and those of its subcommands."""
    names = {name for one in command.params for name in [*one.opts, *one.secondary_opts]}
    for sub in command.commands.values() if isinstance(command, TyperGroup) else ():
        names |= options(sub)
    return names | {"--help"}


def unknown_options(document: str) -> list[str]:
    """Return options outside a command line that neither wal2lake nor a test run has."""
    known = _test_options().union(*map(options, commands().values()))
    named = [_OPTION.match(span) for span in spans(document) if span.startswith("--")]
    return [option[1] for option in named if option and option[1] not in known]


@cache
def _test_options() -> frozenset[str]:
    files = [*ROOT.glob("tests/**/conftest.py"), ROOT / "bench" / "__main__.py"]
    option = re.compile(r'(?:addoption|add_argument)\(\s*"(--[a-z-]+)"')
    return frozenset(name for file in files for name in option.findall(file.read_text()))


def unknown_targets(document: str) -> list[str]:
    """Return targets of make that the Makefile does not have."""
    there = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    calls = re.findall(r"(?<![\w-])make((?: [a-z-]+)+)", code(document))
    return [name for call in calls for name in call.split() if name not in there]


def unknown_keys(document: str) -> list[str]:
    """Return configuration keys, and variables of the environment, that do not exist."""
    there = set(keys(Config))
    named = [span for span in spans(document) if _KEY.fullmatch(span) and span not in OF_OTHERS]
    missing = [name for name in named if name.split(".")[1] not in _FILE_ENDS and name not in there]
    variables = re.findall(rf"\b{ENV_PREFIX}[A-Z_]+", document)
    return missing + [name for name in variables if not _is_variable(name, there)]


def keys(section: type[Any], prefix: str = "") -> Iterator[str]:
    """Yield every key of the configuration, as ``section.key``."""
    for name, field in section.model_fields.items():
        inner = field.annotation
        yield f"{prefix}{name}"
        if isinstance(inner, type) and issubclass(inner, Section):
            yield from keys(inner, f"{prefix}{name}.")


def _is_variable(name: str, there: set[str]) -> bool:
    key = name.removeprefix(ENV_PREFIX).lower().replace("__", ".")
    return key in there or any(name in text for text in _sources())


@cache
def _sources() -> tuple[str, ...]:
    return tuple(path.read_text() for path in ROOT.glob("cdc/**/*.py"))


def missing_files(document: str) -> list[str]:
    """Return paths, test functions and modules in code that do not exist."""
    text = code(document)
    paths = [path.rstrip(".,") for path in _PATH.findall(text)]
    modules = re.findall(r"python -m ((?:cdc|tests|bench)[\w.]*)", text)
    missing = [path for path in paths if not all(map(_exists, _expanded(path)))]
    missing += [name for name in modules if find_spec(name) is None]
    return missing + [
        f"{file}::{function}" if function else file
        for file, function in _TEST_FILE.findall(text)
        if not _is_file(file, function)
    ]


def _expanded(path: str) -> Iterator[str]:
    head, brace, tail = path.partition("{")
    names, _, rest = tail.partition("}")
    yield from (head + name + rest for name in names.split(",")) if brace else (path,)


def _exists(path: str) -> bool:
    return next(ROOT.glob(path.rstrip("/")), None) is not None


def _is_file(name: str, function: str) -> bool:
    places = _files().get(name, [])
    if not function:
        return bool(places)
    return any(f"def {function}(" in path.read_text() for path in places)


@cache
def _files() -> Mapping[str, list[Path]]:
    files: dict[str, list[Path]] = {}
    for path in (path for folder in _FOLDERS for path in (ROOT / folder).rglob("*.py")):
        files.setdefault(path.name, []).append(path)
    return files


def unknown_reasons(document: str) -> list[str]:
    """Return reason codes in brackets that no error has."""
    known = {reason.value for reason in Reason}
    return [name for name in re.findall(r"`\[([a-z]+-[a-z-]+)\]`", document) if name not in known]


def long_lines(document: str) -> list[str]:
    """Return lines of prose wider than a page; tables, code, headings and bare links may be."""
    lines = _FENCE.sub("", document).splitlines()
    prose = [line for line in lines if not line.startswith(("|", "#", "Made from"))]
    return [line for line in prose if len(line) > WIDTH and len(line.split()) > 2]


CHECKS: Final[Mapping[str, Any]] = types.MappingProxyType(
    {
        "commands": unknown_commands,
        "options": unknown_options,
        "targets": unknown_targets,
        "keys": unknown_keys,
        "files": missing_files,
        "reasons": unknown_reasons,
        "width": long_lines,
    }
)
