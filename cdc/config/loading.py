"""Load and check the configuration file, ``wal2lake.yaml``.

Every key can also be set in the environment as ``WAL2LAKE_<SECTION>__<KEY>``, which is meant for
secrets. An error names the key, the line of the file (or the variable) and the remedy, and never
repeats a value that may be a secret.
"""

import os
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast, get_origin

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from cdc.config.config import Config, Lake
from cdc.config.section import Section
from cdc.errors import CdcError, ErrorKind

ENV_PREFIX = "WAL2LAKE_"
DEFAULT_FILE = "wal2lake.yaml"
_WITH_FILES = ("source", "kafka", "connect", "registry", "derived")


def load(path: Path, environ: Mapping[str, str] | None = None) -> Config:
    """Read the file, merge the environment into it and check the result.

    Relative paths are taken from the file's directory; ``environ`` defaults to ``os.environ``.
    Raises CONFIG with the key, the line and the remedy.
    """
    raw, lines = _read(path)
    merged, variables = _with_environment(raw, os.environ if environ is None else environ)
    try:
        config = Config.model_validate(merged)
    except ValidationError as error:
        raise _explain(path, error.errors()[0], {**lines, **variables}) from None
    return _absolute(config, path.parent.resolve())


Keys = tuple[str, ...]


def _read(path: Path) -> tuple[dict[str, Any], dict[Keys, str]]:
    """Return the keys of the file, and the place of each (``:line``)."""
    try:
        text = path.read_text()
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        raw = yaml.safe_load(text)
    except FileNotFoundError:
        raise CdcError(
            ErrorKind.CONFIG,
            f"no configuration file {path}",
            remedy="run wal2lake init, or name the file with --config",
        ) from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise _unreadable(path, error) from None
    if not isinstance(raw, dict):
        raise CdcError(
            ErrorKind.CONFIG,
            f"{path} has no keys",
            remedy="run wal2lake init --force to write a working example",
        )
    return cast("dict[str, Any]", raw), dict(_lines(path, node, ()))


def _unreadable(path: Path, error: Exception) -> CdcError:
    """Explain an error without the excerpt that YAML adds, as the line may hold a password."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return CdcError(
            ErrorKind.CONFIG,
            f"{path}:{error.problem_mark.line + 1}: not YAML: {error.problem}",
            remedy="indent with spaces, and quote values that contain : # * or {",
        )
    reason = error.strerror if isinstance(error, OSError) else "not YAML text in UTF-8"
    return CdcError(ErrorKind.CONFIG, f"{path} cannot be read: {str(reason).lower()}")


def _lines(path: Path, node: yaml.Node | None, above: Keys) -> Iterator[tuple[Keys, str]]:
    """Yield the place of each key and list item; raise CONFIG for a key that is given twice."""
    if isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield (*above, str(index)), f":{item.start_mark.line + 1}"
    if not isinstance(node, yaml.MappingNode):
        return
    seen: set[str] = set()
    for key, value in node.value:
        keys, line = (*above, str(key.value)), key.start_mark.line + 1
        if keys[-1] in seen:
            raise CdcError(
                ErrorKind.CONFIG,
                f"{path}:{line}: {'.'.join(keys)} is given twice",
                remedy="keep one of them",
            )
        seen.add(keys[-1])
        yield keys, f":{line}"
        yield from _lines(path, value, keys)


def _with_environment(
    raw: dict[str, Any], environ: Mapping[str, str]
) -> tuple[dict[str, Any], dict[Keys, str]]:
    """Return the keys overridden by the environment, and the variable of each that it sets."""
    # A section whose every key is commented out reads as null.
    merged = {key: {} if value is None else value for key, value in raw.items()}
    variables: dict[Keys, str] = {}
    for name, text in environ.items():
        keys = _keys_of(name)
        if len(keys) == 1:
            merged[keys[0]] = text
        elif keys:
            section, key = keys
            below = merged.get(section, {})
            if isinstance(below, dict):  # otherwise validation reports the section
                merged[section] = {**below, key: _value(section, key, text)}
        if keys:
            variables[keys] = name
    return merged, variables


def _keys_of(variable: str) -> Keys:
    """Return the keys that an environment variable sets; none if it is not one of wal2lake's."""
    if not variable.startswith(ENV_PREFIX):
        return ()
    name = variable.removeprefix(ENV_PREFIX).lower()
    section, double, key = name.partition("__")
    if double:
        return section, key
    return (name,) if name in {"name", "state_dir"} else ()


def _value(section: str, key: str, text: str) -> Any:  # noqa: ANN401 - what YAML gives
    """Parse a variable: lists separated by commas, mappings as YAML, all else as plain text."""
    field = Config.model_fields.get(section)
    model = field.annotation if field else None
    below = getattr(model, "model_fields", {}).get(key)
    kind = get_origin(below.annotation) if below else None
    if kind is list:
        return [item.strip() for item in text.split(",")]
    if kind is dict:
        try:
            return yaml.safe_load(text)
        except yaml.YAMLError:
            return text  # validation reports that it is not a mapping
    return text


def _explain(path: Path, error: ErrorDetails, places: Mapping[Keys, str]) -> CdcError:
    keys = tuple(str(part) for part in error["loc"])
    depth = next((n for n in range(len(keys), 0, -1) if keys[:n] in places), 0)
    place = places.get(keys[:depth], "")
    where = place if place.startswith(ENV_PREFIX) else f"{path}{place}"
    message, remedy = _message(error, keys)
    parts = filter(None, (where, ".".join(keys), message))  # no key: several sections are at odds
    return CdcError(ErrorKind.CONFIG, ": ".join(parts), remedy=remedy)


def _message(error: ErrorDetails, keys: Keys) -> tuple[str, str]:
    reference = "docs/reference/configuration.md"
    match error["type"]:
        case "extra_forbidden":
            near = get_close_matches(keys[-1], _siblings(keys), n=1)
            remedy = f"did you mean {near[0]}?" if near else f"remove it; {reference} lists all"
            return "unknown key", remedy
        case "missing":
            return "missing", f"add it; {reference} explains it"
        case _:
            text = error["msg"].removeprefix("Value error, ")
            return f"{text[:1].lower()}{text[1:]}", f"correct the value; see {reference}"


def _siblings(keys: Keys) -> list[str]:
    """Return the valid keys beside an unknown one."""
    model: Any = Config
    for key in keys[:-1]:
        model = model.model_fields[key].annotation
    return list(model.model_fields)


def _absolute(config: Config, base: Path) -> Config:
    lake = config.lake.path
    if "://" not in lake:
        lake = str(base / Path(lake).expanduser())
    sections = {name: _with_absolute_files(getattr(config, name), base) for name in _WITH_FILES}
    update = {"lake": Lake(path=lake), "state_dir": base / config.state_dir.expanduser()}
    return config.model_copy(update=update | sections)


def _with_absolute_files(section: Section, base: Path) -> Section:
    """Return the section with its files below the folder of the configuration file."""
    files = {name: getattr(section, name) for name in type(section).model_fields}
    update = {
        name: base / value.expanduser() for name, value in files.items() if isinstance(value, Path)
    }
    return section.model_copy(update=update)
