"""Random names: of any alphabet and case, and words reserved by a system on the way."""

import random
from collections.abc import Iterator
from typing import Final

_LONGEST: Final = 63
"""Bytes that Postgres keeps of a name; it cuts off the others without a word of error."""
_ALPHABETS: Final = (
    *("abcxyz", "ABCXYZ", "aBcXyZ", "àéîõüß", "ΑΒγδ", "абвЖЯ", "日本語表", "אבג", "عربي"),
    *("🙂🚀", "\u0131İ\u017fK\u212a", "e\u0301o\u0308", "\u200b\u00a0"),
)
_RESERVED: Final = (
    *("select", "SELECT", "Order", "table", "user", "null", "true", "end", "where", "group"),
    *("before", "after", "op", "source", "ts_ms", "transaction", "key", "value", "Value", "row"),
    *("Envelope", "schema", "payload", "offset", "partition", "ts", "topic", "headers", "id"),
)
_TYPES: Final = ("date", "uuid", "point", "inet", "json", "interval")
"""A table makes a type of its name, which the connector may take for the other."""
_PLAIN: Final = ("-", "_", "0", "9lives", "_x", "a-b", "a_b", "--", "T1", "t1", "007", "__op")
_SIGNS: Final = (
    *("a b", "a.b", '"', "'", "`", "\\", "${x}", "${env:HOME}", "a;b", "a,b", "{a}", "(a)", "[a]"),
    *("*", "?", "%s", "%", "#", "a=b", "a\nb", "a\tb", " a", "a ", "/", "a/b", "..", "$", "@", "é"),
    *("a:b", "~", "|", "<a>", "-- a", "/* a */", "\x7f"),
)
_TWINS: Final = (
    ("twin", "Twin"),
    ("a-b", "a_b"),
    ("é", "ü"),
    ("9a", "_9a"),
    ("K", "\u212a"),
)
_REFUSED: Final = (
    *("_metadata", "_METADATA", "_cdc_offset", "_CDC_x", "_row_id_", "_file_name_"),
    *("__condition__", "DeletionVectorId"),
)


def cut(name: str, most: int = _LONGEST) -> str:
    """Cut a name to what Postgres keeps, or to so many bytes."""
    return name.encode()[:most].decode(errors="ignore")


def of_table(rng: random.Random) -> str:
    """Return a table's name: mostly one that a topic can have, else any that Postgres allows."""
    draw = rng.random()
    if draw < 0.4:
        return cut(f"{rng.choice(_PLAIN)}{_plain_word(rng)}")
    if draw < 0.55:
        return rng.choice(_PLAIN)
    if draw < 0.7:
        return rng.choice(_RESERVED)
    if draw < 0.72:
        return rng.choice(_TYPES)
    if draw < 0.8:
        return "".join(rng.choices("aB_-9", k=_LONGEST))
    return _any(rng)


def of_type(rng: random.Random) -> str:
    """Return a type's name: mostly its own, else one of a type of Postgres."""
    return rng.choice(_TYPES) if rng.random() < 0.03 else _any(rng)


def of_columns(rng: random.Random, number: int) -> list[str]:
    """Return different names of columns, of which a few conflict with each other or an engine."""
    made = dict.fromkeys(_columns(rng, number))
    while len(made) < number:
        made[f"c{len(made)}"] = None
    found = list(made)
    rng.shuffle(found)
    return found


def _columns(rng: random.Random, number: int) -> Iterator[str]:
    """Return names made unique by numbers, or too many tables would conflict in Avro."""
    if number > 1 and rng.random() < 0.04:
        yield from _twins(rng)
        number -= 2
    if number > 0 and rng.random() < 0.06:
        yield rng.choice(_REFUSED)
        number -= 1
    for place in range(number):
        odd = _any(rng) if rng.random() < 0.6 else _plain_word(rng)
        yield f"{cut(odd, _LONGEST - len(str(place)))}{place}" if number > 1 else odd


def _twins(rng: random.Random) -> tuple[str, str]:
    return rng.choice(
        [("twin", "Twin"), ("a-b", "a_b"), ("é", "ü"), ("9a", "_9a"), ("K", "\u212a")]
    )


def _any(rng: random.Random) -> str:
    draw = rng.random()
    if draw < 0.35:
        return rng.choice(_SIGNS)
    if draw < 0.55:
        return rng.choice((*_RESERVED, *_PLAIN))
    length = rng.choice([1, 3, 12, _LONGEST])
    return cut("".join(rng.choices(rng.choice(_ALPHABETS), k=length)))


def _plain_word(rng: random.Random) -> str:
    return "".join(rng.choices("abcdefgXYZ_0123456789", k=rng.randint(1, 12)))
