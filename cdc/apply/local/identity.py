"""Tells rows apart by their key, as Spark does when it groups them."""

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

from cdc.apply.local.change import Key
from cdc.events.schema import TableSchema

NAN: Final = object()
"""Stands for every NaN: in a key all of them are one value, which Python's are not."""
_PLAIN: Final = ("smallint", "int", "bigint", "string", "binary", "date", "timestamp", "decimal")


def key_of(schema: TableSchema) -> Callable[[Sequence[Any]], Key | None]:
    """Return the function from a row's values to its key; None where a part of it is null."""
    numbers = [schema.names.index(name) for name in schema.key]
    if not numbers:
        return lambda _: None
    if len(numbers) == 1 and schema.columns[numbers[0]].type.startswith(_PLAIN):
        number = numbers[0]
        return lambda values: None if values[number] is None else (values[number],)

    def key(values: Sequence[Any]) -> Key | None:
        parts = tuple(_part(values[number]) for number in numbers)
        return None if None in parts else parts

    return key


def _part(value: Any) -> Any:  # noqa: ANN401 - any value
    if isinstance(value, list):
        return tuple(map(_part, value))
    return NAN if isinstance(value, float) and math.isnan(value) else value
