"""Writes numbers and bits as Postgres itself does, from the connector's forms of them.

Each conversion is a Spark text with its Python beside it.
"""

import re
from functools import partial
from typing import Final

from cdc.apply.changes.conversion import END, Conversion
from cdc.events.values.pg_types import NUMBER_WORDS
from cdc.events.values.sql_text import spark_string

_ZEROS: Final = rf"[.]0*{END}"
_HAS_ZEROS: Final = re.compile(_ZEROS)


def number(*, whole: bool) -> Conversion:
    """Return the conversion to the text of a numeric value.

    ``whole`` says that the scale is negative: the connector then adds zeros after the point.
    """
    return Conversion(sql=partial(_number_sql, whole=whole), of=partial(_number_of, whole=whole))


def _number_sql(raw: str, *, whole: bool) -> str:
    cases = " ".join(
        f"WHEN {spark_string(name)} THEN {spark_string(text)}"
        for name, text in NUMBER_WORDS.items()
    )
    plain = f"regexp_replace({raw}, {spark_string(_ZEROS)}, '')" if whole else raw
    return f"CASE {raw} {cases} ELSE {plain} END"


def _number_of(value: str, *, whole: bool) -> str:
    word = NUMBER_WORDS.get(value)
    if word is not None:
        return word
    return _HAS_ZEROS.sub("", value) if whole else value


def perhaps_number(*, whole: bool) -> Conversion:
    """Return the conversion of a text that may be a number of a domain over numeric.

    Then it may be the connector's word for NaN or an infinity, which is no text of the source.
    """
    return Conversion(
        sql=partial(_perhaps_sql, whole=whole), of=partial(_perhaps_of, whole=whole), fallible=True
    )


def _perhaps_sql(raw: str, *, whole: bool) -> str:
    words = ", ".join(map(spark_string, NUMBER_WORDS))
    return f"IF({raw} IN ({words}), NULL, {_number_sql(raw, whole=whole)})"


def _perhaps_of(value: str, *, whole: bool) -> str | None:
    return None if value in NUMBER_WORDS else _number_of(value, whole=whole)


ONE_BIT: Final = Conversion(
    sql=lambda raw: f"IF({raw} IS NULL, NULL, IF({raw}, '1', '0'))",
    of=lambda value: "1" if value else "0",
)


def bits(length: int) -> Conversion:
    """Return the conversion to the text of a bit string of ``length`` bits.

    The connector sends bytes in little-endian order, without leading zeros of the bit string.
    """
    return Conversion(sql=partial(_bits_sql, length=length), of=partial(_bits_of, length=length))


def _bits_sql(raw: str, *, length: int) -> str:
    digits = f"substring(hex({raw}), 2 * b - 1, 2)"
    octets = (
        f"transform(sequence(octet_length({raw}), 1, -1), b -> lpad(conv({digits}, 16, 2), 8, '0'))"
    )
    # array_join of NULL is NULL, but concat_ws of NULL would be an empty text.
    filled = (
        f"concat(repeat('0', {length}), IF(octet_length({raw}) = 0, '', array_join({octets}, '')))"
    )
    return f"right({filled}, {length})"


def _bits_of(value: bytes | str, *, length: int) -> str:
    data = value if isinstance(value, bytes) else value.encode()
    return f"{int.from_bytes(data, 'little'):0{length}b}"[-length:]
