"""Have the connector's converter mask columns, before anything of them is written to Kafka.

The connector's own settings would not do (docs/decisions/0043-masked-columns.md).
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import quote

from cdc.config import Masks, masks_of
from cdc.config.masks import fingerprint, is_hashed
from cdc.errors import CdcError, ErrorKind
from cdc.source.catalog.catalog import SourceTable
from cdc.state.endpoints import salt_reference
from cdc.state.pipeline import Pipeline

CONVERTER: Final = "wal2lake.MaskingAvroConverter"
"""A class of its own: a worker that lacks it sends nothing, rather than values in clear."""
MASKED: Final = "wal2lake.masked.columns"
"""Our own setting, ignored by the connector: the masked columns by OID and number."""
KEY: Final = "key.converter"
VALUE: Final = "value.converter"
_RULES: Final = f"{VALUE}.wal2lake.mask.columns"
_FINGERPRINT: Final = f"{VALUE}.wal2lake.mask.fingerprint"
_WILD: Final = {"*": ".*", "?": "."}


def converter_masks(
    pipeline: Pipeline, tables: Iterable[SourceTable], placeholder: str
) -> dict[str, str]:
    """Return the converter's settings for ``source.columns``; none if that is empty.

    ``tables`` are the captured ones, ``placeholder`` stands for a large value that did not change,
    and stays as it is. Raises CONFIG like ``masks_of``, and where a worker of the user's own has no
    reference to the salt.
    """
    masks = masks_of(pipeline.config.source)
    if not masks.by_pattern:
        return {}
    hashed = is_hashed([mask for _, mask in masks.by_pattern])
    given = {
        "topics": f"{pipeline.name}.",
        "placeholder": placeholder,
        **({"salt": _salt(pipeline), "fingerprint": fingerprint(masks.salt)} if hashed else {}),
    }
    made = dict.fromkeys((KEY, VALUE), CONVERTER)
    for side in (KEY, VALUE):
        for name, text in {**given, "columns": _rules(masks, of_keys=side == KEY)}.items():
            made[f"{side}.wal2lake.mask.{name}"] = text
    named = [table for table in tables if any(column.mask for column in table.columns)]
    made[f"{VALUE}.wal2lake.mask.known"] = "\n".join(map(_known, named))
    return made | {MASKED: json.dumps({table.oid: _numbers(table) for table in named})}


def refuse_other_masks(masks: Masks, running: Mapping[str, str] | None) -> None:
    """Raise CONFLICT if the connector masks otherwise than ``masks``; it is None before the first.

    A job that took its values for something else would mix them with others.
    """
    if running is not None and running.get(_RULES, "") != _rules(masks, of_keys=False):
        raise CdcError(
            ErrorKind.CONFLICT,
            "the connector masks columns otherwise than source.columns says now",
            remedy="wal2lake down, then wal2lake up",
        )


def refuse_new_salt(wanted: Mapping[str, str], running: Mapping[str, str]) -> None:
    """Raise CONFLICT for a salt that a running job may lack, if it has it by its environment."""
    if wanted.get(_FINGERPRINT, "") not in {"", running.get(_FINGERPRINT)}:
        raise CdcError(
            ErrorKind.CONFLICT,
            "source.hash_salt is new to the running job",
            remedy="wal2lake down, then wal2lake up; then wal2lake resnapshot the tables that "
            "wal2lake status names",
        )


def refuse_renamed(
    tables: Iterable[SourceTable], masks: Masks, running: Mapping[str, str] | None
) -> None:
    """Raise SOURCE_NOT_READY where a column was renamed so that it is masked no longer.

    ``running`` is the connector's configuration, which tells the columns that it masks.
    """
    before = json.loads((running or {}).get(MASKED, "{}"))
    for table in tables:
        was = before.get(str(table.oid), {})
        for column in table.columns:
            old = was.get(str(column.number), column.name)
            if old != column.name and not masks.of(table.table, column.name):
                raise CdcError(
                    ErrorKind.SOURCE_NOT_READY,
                    f"{table.table}.{column.name} was called {old}, which source.columns masks; "
                    "under its new name it would be sent as it is",
                    remedy=f"add {table.table}.{column.name} to source.columns, and keep the old "
                    f"name until the change is in the lake; or rename it back",
                )


def _rules(masks: Masks, *, of_keys: bool) -> str:
    return "\n".join(f"{mask} {expression(p, of_keys=of_keys)}" for p, mask in masks.by_pattern)


def _known(table: SourceTable) -> str:
    masked = sum(bool(column.mask) for column in table.columns)
    columns = [quote(column.name, safe="") for column in table.columns]
    return " ".join([quote(str(table.table), safe=""), str(masked), *columns])


def _numbers(table: SourceTable) -> dict[int, str]:
    return {column.number: column.name for column in table.columns if column.mask}


def expression(pattern: str, *, of_keys: bool) -> str:
    """Return a pattern ``schema.table.column`` as a regular expression of Java, for whole names.

    The connector's keys do not tell the real names of columns (``of_keys``), but those made legal
    in Avro (cdc/events/names.py).
    """
    signs = (_WILD.get(sign) or _literal(sign, of_keys=of_keys) for sign in pattern)
    made = "".join(signs)
    return re.sub(r"(?<=\\x\{2e\})(?=[0-9])", "_?", made) if of_keys else made


def _literal(sign: str, *, of_keys: bool) -> str:
    if re.fullmatch("[A-Za-z0-9_]", sign):
        return sign
    code = f"\\x{{{ord(sign):x}}}"
    return f"(?:{code}|__?)" if of_keys and sign != "." else code


def _salt(pipeline: Pipeline) -> str:
    config = pipeline.config
    if config.connect.url is None:
        return salt_reference(config.state_dir)
    if not (config.connect.hash_salt or "").startswith("${"):
        raise CdcError(
            ErrorKind.CONFIG,
            "connect.hash_salt is not a reference that your worker resolves",
            remedy="set it, for example to ${file:/run/secrets/wal2lake:hash_salt}",
        )
    return str(config.connect.hash_salt)
