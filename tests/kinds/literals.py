"""Hypothesis strategies for texts that Postgres reads as values, one for each kind of type."""

import ipaddress
import json
from datetime import date, datetime, timedelta
from datetime import time as clock
from typing import Any
from xml.sax.saxutils import escape

from hypothesis import strategies as st

Texts = st.SearchStrategy[str]

LETTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
WORD = st.text("abcdefghijklmnop", min_size=1, max_size=6)


def integers(bits: int) -> Texts:
    """Signed integers of so many bits."""
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1).map(str)


def unsigned(bits: int) -> Texts:
    """Unsigned integers of so many bits."""
    return st.integers(0, 2**bits - 1).map(str)


def floats(width: Any) -> Texts:  # noqa: ANN401 - hypothesis wants a literal
    """Floats, including NaN, infinities, -0 and subnormals."""
    return st.floats(width=width).map(repr)


def numbers(digits: int, scale: int, *, special: tuple[str, ...] = ()) -> Texts:
    """Numerics of so many digits, ``scale`` of them after the point."""
    largest = 10**digits - 1
    plain = st.integers(-largest, largest).map(lambda n: _shifted(n, scale))
    return plain | st.sampled_from(special) if special else plain


def any_numbers() -> Texts:
    """Numerics without a precision: many digits, trailing zeros, exponents."""
    mantissa = st.integers(-(10**60), 10**60)
    scaled = st.builds(_shifted, mantissa, st.integers(0, 40))
    exponent = st.builds(lambda n, e: f"{n}e{e}", mantissa, st.integers(-60, 200))
    return scaled | exponent | st.sampled_from(["NaN", "Infinity", "-Infinity", "0.000", "-0"])


def _shifted(number: int, scale: int) -> str:
    if scale < 0:
        return str(number * 10**-scale)
    sign, digits = ("-" if number < 0 else ""), str(abs(number)).rjust(scale + 1, "0")
    return f"{sign}{digits[: len(digits) - scale]}.{digits[len(digits) - scale :]}".rstrip(".")


def texts(most: int = 12) -> Texts:
    """Texts of at most so many characters."""
    return st.text(LETTERS, max_size=most)


def one_byte() -> Texts:
    """Values of the type ``"char"``."""
    return st.sampled_from(["", "a", "Z", " ", "\\", "\\001", "\\377", "'", '"'])


def sized(fewest: int, most: int) -> Texts:
    """Strings of bits of such a length."""
    return st.text("01", min_size=fewest, max_size=most)


def octets(most: int = 20) -> Texts:
    """Values of bytea."""
    return st.binary(max_size=most).map(lambda found: "\\x" + found.hex())


FIRST, LAST = datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)  # noqa: DTZ001


def dates(first: date = date(1, 1, 1)) -> Texts:
    """Dates that the lake can hold."""
    return st.dates(min_value=first).map(date.isoformat)


def timestamps(zone: str = "") -> Texts:
    """Timestamps that the lake can hold."""
    spots = st.sampled_from([FIRST, LAST, datetime(1582, 10, 10), datetime(1969, 12, 31, 23)])  # noqa: DTZ001
    return (st.datetimes() | spots).map(lambda found: found.isoformat(" ") + zone)


def clocks() -> Texts:
    """Times of day."""
    return st.times().map(clock.isoformat) | st.just("24:00:00")


def far_dates() -> Texts:
    """Return dates of the whole range of Postgres: BC, the far future, infinities."""
    bc = st.builds("{:04}-{:02}-{:02} BC".format, _to(4713), _to(11), _to(28))
    later = st.builds("{}-{:02}-{:02}".format, st.integers(10_000, 5_874_897), _to(12), _to(28))
    return dates() | bc | later | st.sampled_from(["infinity", "-infinity", "4714-11-24 BC"])


def far_timestamps(zone: str = "", last: str = "54.775806") -> Texts:
    """Timestamps whose microseconds since 1970 fit 64 bits; ``last``: the seconds of the latest."""
    seconds = st.integers(0, 86_399_999_999).map(_clock)
    bc = st.builds(
        lambda y, m, d, t: f"{y:04}-{m:02}-{d:02} {t}{zone} BC",
        _to(4713),
        _to(11),
        _to(28),
        seconds,
    )
    year = st.integers(10_000, 294_246)
    later = st.builds(
        lambda y, m, d, t: f"{y}-{m:02}-{d:02} {t}{zone}", year, _to(12), _to(28), seconds
    )
    ends = [
        "infinity",
        "-infinity",
        f"4714-11-24 00:00:00{zone} BC",
        f"294247-01-10 04:00:{last}{zone}",
    ]
    return timestamps(zone) | bc | later | st.sampled_from(ends)


def _to(most: int) -> st.SearchStrategy[int]:
    return st.integers(1, most)


def _clock(micros: int) -> str:
    return str((datetime(1970, 1, 1) + timedelta(microseconds=micros)).time())  # noqa: DTZ001


def intervals() -> Texts:
    """Intervals up to the connector's limit of 2147483647 hours."""
    months = st.integers(-178_000_000 * 12, 178_000_000 * 12) | st.integers(-30, 30)
    days = st.integers(-(2**31), 2**31 - 1) | st.integers(-40, 40)
    most = 2_147_483_647 * 3_600 * 10**6
    micros = st.integers(-most, most) | st.integers(-(10**11), 10**11)
    return st.builds(lambda mo, d, us: f"{mo} mons {d} days {_time(us)}", months, days, micros)


def _time(micros: int) -> str:
    seconds, fraction = divmod(abs(micros), 10**6)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{'-' if micros < 0 else ''}{hours}:{minutes:02}:{seconds:02}.{fraction:06}"


def documents(*, plain: bool) -> Texts:
    """JSON; if ``plain``, as jsonb accepts it: no NUL, no number out of range."""
    names = st.text(LETTERS, max_size=5)
    leaves: st.SearchStrategy[Any] = st.none() | st.booleans() | st.integers() | names
    if plain:
        leaves |= st.floats(allow_nan=False, allow_infinity=False)
    tree = st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
        max_leaves=5,
    )
    return st.builds(
        lambda found, gap: json.dumps(found, indent=gap), tree, st.sampled_from([None, 1])
    )


def xml() -> Texts:
    """XML elements."""
    legal = st.text(st.characters(categories=["L", "N", "P", "Zs"]), max_size=10)
    return legal.map(lambda found: f"<a b='1'>{escape(found)}</a>") | st.sampled_from(
        ["", "x", "<a/>"]
    )


def addresses(*, network: bool) -> Texts:
    """Values of inet, or of cidr if ``network``."""

    def printed(address: Any, length: int) -> str:  # noqa: ANN401
        prefix = length % (address.max_prefixlen + 1)
        if network:
            return str(ipaddress.ip_network((address, prefix), strict=False))
        return f"{address}/{prefix}"

    return st.builds(printed, st.ip_addresses(), st.integers(0, 128))


def hardware(octets_: int) -> Texts:
    """MAC addresses of so many octets."""
    return st.binary(min_size=octets_, max_size=octets_).map(lambda found: found.hex(":"))


def ranges(bounds: st.SearchStrategy[Any], spell: Any = str) -> Texts:  # noqa: ANN401
    """Ranges between such bounds, some open or without a bound."""

    def printed(pair: list[Any], ends: str, open_: int) -> str:
        low, high = (f'"{spell(bound)}"' for bound in sorted(pair))
        return f"{ends[0]}{'' if open_ & 1 else low},{'' if open_ & 2 else high}{ends[1]}"

    ends = st.sampled_from(["[]", "[)", "(]", "()"])
    pairs = st.lists(bounds, min_size=2, max_size=2)
    return st.builds(printed, pairs, ends, st.integers(0, 3)) | st.just("empty")


def several(one: Texts) -> Texts:
    """Multiranges of the ranges."""
    return st.lists(one, max_size=3).map(lambda found: f"{{{','.join(found)}}}")


def snapshots() -> Texts:
    """Values of pg_snapshot."""

    def printed(low: int, running: list[int]) -> str:
        inside = sorted({low + step for step in running})
        return f"{low}:{(inside[-1] if inside else low) + 1}:{','.join(map(str, inside))}"

    return st.builds(printed, st.integers(1, 2**31), st.lists(st.integers(0, 1000), max_size=4))


def lsns() -> Texts:
    """Values of pg_lsn."""
    return st.builds("{:X}/{:X}".format, st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))


def words(glue: str) -> Texts:
    """Return a few words, joined by ``glue``."""
    return st.lists(WORD, min_size=1, max_size=4).map(glue.join)


def pairs() -> Texts:
    """Hstore values."""
    some = st.dictionaries(texts(6), st.none() | texts(6), max_size=4)
    return some.map(
        lambda found: ", ".join(
            f"{_quoted(key)}=>{'NULL' if value is None else _quoted(value)}"
            for key, value in found.items()
        )
    )


def composites() -> Texts:
    """Values of a composite type of a number and a text."""
    number = st.none() | st.integers(-(2**31), 2**31 - 1)
    return st.builds(
        lambda n, t: f"({'' if n is None else n},{'' if t is None else _quoted(t)})",
        number,
        st.none() | texts(),
    )


def arrays(one: Texts, *, only_null: bool) -> Texts:
    """Arrays of one dimension, also of NULLs only if ``only_null``.

    The connector sends some arrays of nothing but NULLs like nested ones.
    """
    lists = st.lists(st.none() | one, max_size=4)
    if not only_null:
        lists = lists.filter(lambda found: not found or any(item is not None for item in found))
    return lists.map(
        lambda found: (
            "{" + ",".join("NULL" if item is None else _quoted(item) for item in found) + "}"
        )
    )


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
