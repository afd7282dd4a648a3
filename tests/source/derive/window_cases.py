"""Name queries over windows of event time, each with what it means in Postgres as written by hand.

``date_bin`` and correlated subqueries have nothing in common with what is printed.
"""

from typing import Final

_EDGES: Final = "SELECT id, window_start, window_end FROM {form}"
_BINNED: Final = """\
SELECT id, {bin} AS window_start, {bin} + INTERVAL '{length}' AS window_end
FROM dialect.{table} WHERE {time} IS NOT NULL"""
_HOPPED: Final = """\
SELECT id, s.w AS window_start, s.w + INTERVAL '{length}' AS window_end FROM dialect.{table},
generate_series({bin} - INTERVAL '{length}' + INTERVAL '{slide}', {bin}, '{slide}') AS s(w)
WHERE {time} IS NOT NULL"""
_QUIET_BEFORE: Final = """\
(SELECT max(a.{time}) FROM dialect.m a WHERE a.{time} <= m.{time} AND {same_a} AND NOT EXISTS (
 SELECT FROM dialect.m b WHERE b.{time} < a.{time} AND b.{time} >= a.{time} - INTERVAL '{gap}'
 AND {same_b}))"""
_QUIET_AFTER: Final = """\
(SELECT min(a.{time}) FROM dialect.m a WHERE a.{time} >= m.{time} AND {same_a} AND NOT EXISTS (
 SELECT FROM dialect.m b WHERE b.{time} > a.{time} AND b.{time} <= a.{time} + INTERVAL '{gap}'
 AND {same_b})) + INTERVAL '{gap}'"""


def _tumbled(table: str, time: str, length: str, origin: str = "") -> tuple[str, str]:
    given = f", TIMESTAMP '{origin}'" if origin else ""
    form = f"tumble(dialect.{table}, {time}, INTERVAL '{length}'{given})"
    values = {"table": table, "time": time, "length": length, "bin": _bin(time, length, origin)}
    return _EDGES.format(form=form), _BINNED.format(**values)


def _hopped(table: str, time: str, slide: str, length: str, origin: str = "") -> tuple[str, str]:
    given = f", TIMESTAMP '{origin}'" if origin else ""
    form = f"hop(dialect.{table}, {time}, INTERVAL '{slide}', INTERVAL '{length}'{given})"
    values = {"table": table, "time": time, "length": length, "slide": slide}
    return _EDGES.format(form=form), _HOPPED.format(bin=_bin(time, slide, origin), **values)


def _bin(time: str, length: str, origin: str) -> str:
    return f"date_bin('{length}', {time}, '{origin or '1970-01-01'} 00:00:00')"


def _sessions(time: str, gap: str, *keys: str) -> tuple[str, str]:
    given = ", ".join(["dialect.m", time, f"INTERVAL '{gap}'", *keys])
    same_a, same_b = (
        " AND ".join(f"m.{key} IS NOT DISTINCT FROM {name}.{key}" for key in keys) or "TRUE"
        for name in "ab"
    )
    values = {"time": time, "gap": gap, "same_a": same_a, "same_b": same_b}
    start, end = _QUIET_BEFORE.format(**values), _QUIET_AFTER.format(**values)
    return _EDGES.format(form=f"sessions({given})"), (
        f"SELECT id, {start} AS window_start, {end} AS window_end FROM dialect.m "
        f"WHERE {time} IS NOT NULL"
    )


_JOINED: Final = (
    """\
SELECT w.window_end, count(*) AS c, sum(h.n) AS s
FROM tumble(dialect.m, tz, INTERVAL '1 day') AS w
LEFT JOIN hop(dialect.m, tz, INTERVAL '12 hours', INTERVAL '1 day') h
ON h.window_start = w.window_start AND h.k = w.k GROUP BY w.window_end""",
    """\
WITH w AS (SELECT *, date_bin('1 day', tz, 'epoch') AS s FROM dialect.m WHERE tz IS NOT NULL),
h AS (SELECT m.*, s FROM dialect.m, generate_series(
 date_bin('12 hours', tz, 'epoch') - INTERVAL '12 hours', date_bin('12 hours', tz, 'epoch'),
 '12 hours') AS x(s))
SELECT w.s + INTERVAL '1 day' AS window_end, count(*) AS c, sum(h.n) AS s
FROM w LEFT JOIN h ON h.s = w.s AND h.k = w.k GROUP BY w.s""",
)
_FRAME: Final = "RANGE BETWEEN INTERVAL '{0}' PRECEDING AND CURRENT ROW"
_PAIRS: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "tumble": (
        *(
            _tumbled(table, time, length)
            for table in ("m", "v")
            for time in ("ts", "tz")
            for length in ("1 second", "5 minutes", "1 hour", "1 day", "7 days")
        ),
        *(_tumbled("m", time, "7 days", "2024-01-01") for time in ("ts", "tz")),
        _tumbled("m", "ts", "90 minutes", "1969-12-31"),
        _tumbled("m", "tz", "36500 days"),
        _JOINED,
    ),
    "hop": (
        *(_hopped("m", time, "2 minutes", "10 minutes") for time in ("ts", "tz")),
        *(_hopped("m", time, "1 day", "7 days", "2024-01-02") for time in ("ts", "tz")),
        _hopped("v", "ts", "1 hour", "1 hour"),
        _hopped("v", "tz", "1 minute", "100 minutes"),
    ),
    "sessions": (
        *(_sessions("ts", gap) for gap in ("1 second", "5 minutes", "1 hour", "3650 days")),
        *(_sessions("tz", gap, "k") for gap in ("1 second", "5 minutes", "30 minutes", "1 day")),
        _sessions("tz", "1 day", "k", "n"),
    ),
}
_RANGES: Final = tuple(
    f"SELECT id, {function} OVER ({window} {_FRAME.format(length)}) AS x FROM dialect.m"
    for function in ("sum(n)", "count(*)", "min(k)", "max(n) FILTER (WHERE n <> 2)")
    for window, length in (
        ("ORDER BY ts", "5 minutes"),
        ("PARTITION BY k ORDER BY tz", "1 day"),
        ("ORDER BY tz DESC NULLS LAST", "30 minutes"),
        ("ORDER BY d", "36 hours"),
    )
)
CASES: Final = {
    **{name: tuple(text for text, _ in pairs) for name, pairs in _PAIRS.items()},
    "range": _RANGES,
}
BY_HAND: Final = dict(pair for pairs in _PAIRS.values() for pair in pairs)
"""What a text means in Postgres, which has no such windows."""
