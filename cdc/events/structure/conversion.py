"""Decide what ``ALTER COLUMN ... TYPE`` without USING does to a column's existing values.

Postgres converts them with its assignment cast and rejects the statement if a value does not fit,
so a narrower type alone loses nothing. Rounding, trimming blanks and spelling a value differently
do alter it: pairs of types that may do so are not accepted here.
"""

import re
from typing import Final

from cdc.events.schema import fits
from cdc.events.structure.structure import StructureColumn

_INTEGERS: Final = frozenset({"int2", "int4", "int8"})
_TEXTS: Final = frozenset({"text", "varchar", "citext"})
_SPELLED_ALIKE: Final = frozenset({*_INTEGERS, "numeric", "bool", "uuid"})
"""Types whose cast to text is the lake's own spelling and has no trailing blanks to lose."""
_KEPT_AS_TEXT: Final = frozenset({"json", "jsonb", "xml"})
_EXACT: Final = frozenset(
    {
        ("int2", "float4"),
        ("int2", "float8"),
        ("int4", "float8"),
        ("float4", "float8"),
        ("date", "timestamp"),
    }
)
_FRACTIONS: Final = frozenset({"time", "timestamp", "timestamptz"})
_MICROSECONDS: Final = 6
_LAKE_INTEGERS: Final = frozenset({"smallint", "int", "bigint"})
_CASTS: Final = {
    **dict.fromkeys(_LAKE_INTEGERS, frozenset({"float", "double", "string"})),
    "boolean": frozenset({"string"}),
    "float": frozenset({"double"}),
    "date": frozenset({"timestamp_ntz"}),
}
_DECIMAL: Final = re.compile(r"decimal\(\d+,\d+\)")
_ARRAY: Final = re.compile(r"array<(.*)>")


def common_type(old: StructureColumn, new: StructureColumn) -> str | None:
    """Return the lake type that holds old and new values, or None if an old value may have changed.

    The type is Spark DDL text. Casting the old values to it gives what the source shows now.
    """
    if not _same_values(old, new):
        return None
    as_text = old.column.as_text and _base(old) == _base(new)
    if as_text or old.lake == new.lake or fits(new.lake, old.lake):
        return old.lake
    return new.lake if _castable(old.lake, new.lake) else None


def _castable(old: str, new: str) -> bool:
    before, after = _ARRAY.fullmatch(old), _ARRAY.fullmatch(new)
    if before and after:
        return before[1] == after[1] or _castable(before[1], after[1])
    if old in _LAKE_INTEGERS and (new in _LAKE_INTEGERS or _DECIMAL.fullmatch(new)):
        return True
    if _DECIMAL.fullmatch(old):
        return new == "string" or bool(_DECIMAL.fullmatch(new))
    return new in _CASTS.get(old, ())


def _same_values(old: StructureColumn, new: StructureColumn) -> bool:
    before, after = _base(old), _base(new)
    if bool(old.declared.element) != bool(new.declared.element):
        return False
    if {before, after} <= _INTEGERS or (before, after) in _EXACT:
        return True
    if after in _TEXTS:
        return _same_text(old, new)
    if after == "numeric":
        return _same_number(old, new)
    if before in _FRACTIONS and before == after:
        return _fraction(old) <= _fraction(new)
    return _same_type(old, new)


def _base(column: StructureColumn) -> str:
    return column.declared.element or column.declared.name


def _same_type(old: StructureColumn, new: StructureColumn) -> bool:
    """Compare two types by content, because a user-defined type may have been renamed.

    The spelling of enum values is compared in ``steps``.
    """
    if old.parts:
        return old.parts == new.parts
    if _is_enum(old) and _is_enum(new):
        before, after = dict(old.labels), dict(new.labels)
        return before.keys() <= after.keys()
    same_length = old.declared.modifier == new.declared.modifier
    return _base(old) == _base(new) and same_length


def _is_enum(column: StructureColumn) -> bool:
    return "e" in {column.declared.kind, column.declared.element_kind}


def _same_text(old: StructureColumn, new: StructureColumn) -> bool:
    before = _base(old)
    if before in _SPELLED_ALIKE:
        return True
    longest = new.pg.length
    if before in _TEXTS:
        # A shorter type silently trims trailing blanks.
        return longest is None or (old.pg.length is not None and old.pg.length <= longest)
    return longest is None and (before in _KEPT_AS_TEXT or _is_enum(old))


def _same_number(old: StructureColumn, new: StructureColumn) -> bool:
    """Tell whether a cast to numeric keeps every value.

    A negative scale rounds to tens. Where the lake keeps text, trailing zeros count too.
    """
    if _base(old) in _INTEGERS:
        scale = new.pg.scale or 0
        return scale == 0 or (scale > 0 and new.lake != "string")
    if _base(old) != "numeric":
        return False
    if new.pg.length is None:
        return True
    if old.pg.length is None:
        return False
    before, after = old.pg.scale or 0, new.pg.scale or 0
    return before == after if "string" in {old.lake, new.lake} else before <= after


def _fraction(column: StructureColumn) -> int:
    return column.declared.modifier if column.declared.modifier >= 0 else _MICROSECONDS
