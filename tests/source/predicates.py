"""Define a table of awkward values, and generate predicates over it as users may type them."""

import random
from typing import Final

from hypothesis import strategies as st

COLUMNS: Final = {
    "id": "int8",
    "s": "int2",
    "i": "int4",
    "b": "int8",
    "o": "oid",
    "f4": "float4",
    "f8": "float8",
    "total": "numeric(10,2)",
    "wide": "numeric(38,10)",
    "flag": "bool",
    "d": "date",
    "t": "timestamp",
    "tz": "timestamptz",
    "name": "text",
    "Note": "varchar(20)",
    "code": "char(5)",
    "u": "uuid",
    "mood": "mood",
    "j": "jsonb",
    "pair": "pair",
}
NUMBERS: Final = {
    "s": ["-32768", "-32767", "-11", "-1", "0", "1", "7", "10", "32767"],
    "i": ["-2147483648", "-13", "0", "3", "32768", "2147483647"],
    "b": ["-9223372036854775808", "-2147483649", "-10", "0", "10", "9223372036854775807"],
    "o": ["0", "1", "2147483648", "4294967295"],
    "f4": ["-0", "0", "0.1", "1e38", "-1e-45", "16777216", "NaN", "Infinity", "-Infinity"],
    "f8": ["-0", "0", "0.1", "1e308", "5e-324", "0.30000000000000004", "NaN", "-Infinity"],
    "total": ["-99999999.99", "-0.01", "0", "0.10", "1", "99999999.99"],
    "wide": ["-9999999999999999999999999999.9999999999", "0", "0.0000000001", "123.5"],
}
TIMES: Final = {
    "d": ["0001-01-01", "1582-10-10", "1969-12-31", "2024-02-29", "9999-12-31"],
    "t": ["0001-01-01 00:00:00", "1969-12-31 23:59:59.999999", "2024-02-29 12:00:00.000001"],
    "tz": ["0001-01-02 00:00:00+00", "2024-02-29 12:00:00.5+00", "9999-12-30 23:59:59.999999+00"],
}
WORDS: Final = [
    *("", " ", "a", "A", "ab", "ab ", "abc", "a%b", "a_b", "a\\b", "a\\%", "%", "_", "\\", "'"),
    *("''", "é", "e\u0301", "\U0001f600", "\U0001f600b", "a\nb", "${x}", "\\u0041", "--", '"'),
]
UUIDS: Final = [
    "00000000-0000-0000-0000-000000000000",
    "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
    "ffffffff-ffff-ffff-ffff-ffffffffffff",
]
MOODS: Final = ["zzz", "ok", "it's"]
POOLS: Final[dict[str, list[str]]] = {
    **NUMBERS,
    **TIMES,
    "flag": ["true", "false"],
    "name": WORDS,
    "Note": WORDS,
    "code": [*(word[:5] for word in WORDS), "ab   ", " ab"],
    "u": UUIDS,
    "mood": MOODS,
    "j": ["null", "{}", "1"],
    "pair": ["(,)", "(1,)", "(1,2)"],
}
_PATTERN: Final = [
    "%",
    "_",
    "\\%",
    "\\_",
    "\\\\",
    "\\a",
    "a",
    "b",
    "A",
    "\U0001f600",
    "é",
    "'",
    "\n",
]
_ORDERED: Final = ["=", "<>", "!=", "<", "<=", ">", ">="]


def rows(count: int, seed: int) -> list[tuple[str | None, ...]]:
    """Return rows of texts, in the order of the columns, that use every value of each pool."""
    chance = random.Random(seed)
    pools = [POOLS[name] for name in COLUMNS if name != "id"]
    found: list[tuple[str | None, ...]] = [(str(count), *(None for _ in pools))]
    for number in range(count):
        chosen = [
            pool[number % len(pool)] if number < len(pool) else _or_null(chance, pool)
            for pool in pools
        ]
        found.append((str(number), *chosen))
    return found


def _or_null(chance: random.Random, pool: list[str]) -> str | None:
    return None if chance.random() < 0.15 else chance.choice(pool)


def texts() -> st.SearchStrategy[str]:
    """Generate comparisons, joined with and without parentheses."""
    return st.recursive(comparisons(), _joined, max_leaves=5)


def comparisons() -> st.SearchStrategy[str]:
    """Generate single comparisons of a column."""
    return st.sampled_from(sorted(COLUMNS.keys() - {"id", "pair"})).flatmap(_of)


@st.composite
def _joined(draw: st.DrawFn, inner: st.SearchStrategy[str]) -> str:
    form = draw(st.sampled_from(["{} AND {}", "{} or {}", "NOT {}", "({})", "not ({} OR {})"]))
    return form.format(*(draw(inner) for _ in range(form.count("{}"))))


@st.composite
def _of(draw: st.DrawFn, name: str) -> str:
    shown = draw(st.sampled_from(_spellings(name)))
    form = draw(st.sampled_from(_forms(name)))
    if form == "remainder":
        shown, form = _remainder(draw, shown), "compare"
        values = st.integers(-12, 12).map(str)
    else:
        values = _constants(name)
    match form:
        case "null":
            word = draw(st.sampled_from(["IS NULL", "is not null", "NOTNULL", "isnull"]))
            return f"{shown} {word}"
        case "in":
            listed = draw(st.lists(values, min_size=1, max_size=13))
            return f"{shown} {draw(_word('IN'))} ({', '.join(listed)})"
        case "between":
            return f"{shown} {draw(_word('BETWEEN'))} {draw(values)} AND {draw(values)}"
        case "like":
            pattern = "".join(draw(st.lists(st.sampled_from(_PATTERN), max_size=5)))
            return f"{shown} {draw(_word('LIKE'))} {quoted(pattern)}"
        case "flag":
            return shown
        case _:
            signs = _ORDERED if "between" in _forms(name) else _ORDERED[:3]
            sides = [shown, draw(values)]
            if draw(st.booleans()):
                sides.reverse()
            return f"{sides[0]} {draw(st.sampled_from(signs))} {sides[1]}"


def _forms(name: str) -> list[str]:
    if name == "j":
        return ["null"]
    if name in {"name", "Note"}:
        return ["null", "compare", "in", "like", "like"]
    if name in {"code", "mood"}:
        return ["null", "compare", "in"]
    extra = {"flag": ["flag", "flag"], **dict.fromkeys(("s", "i", "b"), ["remainder"] * 2)}
    return ["null", "compare", "compare", "in", "between", *extra.get(name, [])]


def _spellings(name: str) -> list[str]:
    if name == "Note":
        return ['"Note"', 'awkward."Note"']
    return [name, name.upper(), f'"{name}"', f"( {name} )", f"awkward.{name}"]


def _remainder(draw: st.DrawFn, shown: str) -> str:
    divisor = draw(st.sampled_from(["10", "3", "-7", "1", "-1", "100000", "2147483648"]))
    return draw(st.sampled_from([f"{shown} % {divisor}", f"mod({shown}, {divisor})"]))


def _word(word: str) -> st.SearchStrategy[str]:
    return st.sampled_from([word, word.lower(), f"NOT {word}", f"not  {word}"])


def _constants(name: str) -> st.SearchStrategy[str]:
    if name in TIMES:
        return _times(name)
    pool = st.sampled_from(POOLS[name])
    near = st.integers(-40_000, 40_000) | st.sampled_from([2**31, -(2**31) - 1, 2**62])
    more = st.decimals(-(10**20), 10**20, places=2).map(lambda n: f"{n:f}")
    made: dict[str, st.SearchStrategy[str]] = {
        **dict.fromkeys(("s", "i", "b"), near.map(str) | pool),
        **dict.fromkeys(("total", "wide"), more | pool),
        "o": pool,
        "f4": st.floats(width=32).map(lambda number: quoted(repr(number))),
        "f8": st.floats(-1e9, 1e9).map(repr),
        "flag": st.sampled_from(["true", "FALSE", "'t'", "bool 'false'"]),
    }
    return made.get(name, pool.map(quoted)) | pool.map(quoted)


def _times(name: str) -> st.SearchStrategy[str]:
    pool = st.sampled_from(TIMES[name])
    kind = {"d": "date", "t": "timestamp", "tz": "timestamptz"}[name]
    forms = st.sampled_from(["'{}'", kind + " '{}'", "'{}'::" + kind, f"CAST('{{}}' AS {kind})"])
    if name == "tz":
        more = ["2024-02-29 14:00:00.5+02", "2024-02-29T07:00:00.5-0500", "1970-01-01 00:00:00Z"]
        pool |= st.sampled_from(more)
    if name == "t":
        pool |= st.sampled_from(["2024-02-29", "2024-02-29T12:00", "9999-12-31 23:59:59.999999"])
    return st.tuples(forms, pool).map(lambda pair: pair[0].format(pair[1]))


def quoted(text: str) -> str:
    """Return a string literal of Postgres, for standard_conforming_strings = on."""
    doubled = text.replace("'", "''")
    return f"'{doubled}'"
