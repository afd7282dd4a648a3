"""Says what Nexmark's queries mean, in queries for DuckDB written from Nexmark's own text.

The tables are ``person``, ``auction``, ``bid`` and ``side_input``.
"""

from typing import Final

_IN_TIME: Final = "b.date_time >= a.date_time AND b.date_time <= a.expires"
_DAY: Final = "strftime(date_time, '%Y-%m-%d')::date"
_RANKS: Final = {
    "total": "true",
    "rank1": "price < 10000",
    "rank2": "price >= 10000 AND price < 1000000",
    "rank3": "price >= 1000000",
}
_COUNTS: Final = ", ".join(f"count_if({test})" for test in _RANKS.values())
_DISTINCT: Final = ", ".join(
    f"len(list_distinct(list({column}) FILTER ({test} AND {column} IS NOT NULL)))"
    for column in ("bidder", "auction")
    for test in _RANKS.values()
)
_EVERY: Final = f"{_COUNTS}, {_DISTINCT.replace('len(', 'coalesce(len(').replace(')))', '))), 0)')}"
_HOPS: Final = """\
SELECT auction, count(*) AS num, s FROM bid, range(5) AS r(back),
LATERAL (SELECT time_bucket(INTERVAL '2 seconds', date_time) - to_seconds(2 * back) AS s)
WHERE date_time IS NOT NULL GROUP BY auction, s"""

QUERIES: Final[dict[str, str]] = {
    "q0": "SELECT auction, bidder, price, date_time, extra FROM bid",
    "q1": "SELECT auction, bidder, 0.908 * price, date_time, extra FROM bid",
    "q2": "SELECT auction, price FROM bid WHERE auction % 13 = 0",
    "q3": """\
SELECT name, city, state, a.id FROM auction a, person p
WHERE seller = p.id AND category = 10 AND (state = 'OR' OR state = 'ID' OR state = 'CA')""",
    "q4": f"""\
SELECT category, sum(final), count(*) FROM (
  SELECT max(price) AS final, category FROM auction a, bid b
  WHERE a.id = b.auction AND {_IN_TIME} GROUP BY a.id, category)
GROUP BY category""",
    "q5": f"""\
WITH counted AS ({_HOPS})
SELECT c.auction, c.num, c.s FROM counted c
WHERE NOT EXISTS (FROM counted o WHERE o.s = c.s AND o.num > c.num)""",
    "q6": f"""\
WITH won AS (SELECT a.id, seller, expires, max(price) AS final FROM auction a, bid b
  WHERE a.id = b.auction AND {_IN_TIME} GROUP BY ALL)
SELECT seller, id, sum(final) OVER w, (SELECT count(*) FROM won o
  WHERE o.seller IS NOT DISTINCT FROM won.seller
  AND (o.expires < won.expires OR (o.expires = won.expires AND o.id <= won.id))) FROM won
WINDOW w AS (PARTITION BY seller ORDER BY expires, id ROWS BETWEEN 10 PRECEDING AND CURRENT ROW)""",
    "q7": """\
WITH best AS (SELECT max(price) AS price, time_bucket(INTERVAL '10 seconds', date_time) AS s
  FROM bid WHERE date_time IS NOT NULL GROUP BY s)
SELECT auction, b.price, bidder, date_time, extra FROM bid b, best
WHERE b.price = best.price AND date_time >= s AND date_time < s + INTERVAL '10 seconds'""",
    "q8": """\
SELECT p.id, p.name, s FROM (
  SELECT id, name, time_bucket(INTERVAL '10 seconds', date_time) AS s FROM person GROUP BY ALL) p
JOIN (SELECT seller, time_bucket(INTERVAL '10 seconds', date_time) AS s FROM auction GROUP BY ALL) a
USING (s) WHERE p.id = a.seller""",
    "q9": f"""\
SELECT a.*, b.auction, b.bidder, b.price, b.date_time, b.extra FROM auction a, bid b
WHERE a.id = b.auction AND {_IN_TIME} AND NOT EXISTS (FROM bid o
  WHERE o.auction = a.id AND o.date_time BETWEEN a.date_time AND a.expires AND o.id <> b.id
  AND (-o.price, o.date_time, o.id) < (-b.price, b.date_time, b.id))""",
    "q10": f"""\
SELECT auction, bidder, price, date_time, extra, {_DAY}, strftime(date_time, '%H')::int,
strftime(date_time, '%M')::int FROM bid""",
    "q11": """\
WITH marked AS (SELECT bidder, date_time, coalesce(date_time - lag(date_time) OVER w
  > INTERVAL '10 seconds', true) AS begins FROM bid WHERE date_time IS NOT NULL
  WINDOW w AS (PARTITION BY bidder ORDER BY date_time)),
numbered AS (SELECT *, count_if(begins) OVER (PARTITION BY bidder ORDER BY date_time) AS n
  FROM marked)
SELECT bidder, count(*), min(date_time), max(date_time) + INTERVAL '10 seconds' FROM numbered
GROUP BY bidder, n""",
    "q12": """\
SELECT bidder, count(*), time_bucket(INTERVAL '10 seconds', date_time) AS s,
s + INTERVAL '10 seconds' FROM bid WHERE date_time IS NOT NULL GROUP BY bidder, s""",
    "q13": """\
SELECT auction, bidder, price, date_time, value FROM bid, side_input WHERE auction % 20 = key""",
    "q14": """\
SELECT auction, bidder, 0.908 * price, CASE WHEN hour(date_time) >= 8 AND hour(date_time) <= 18
THEN 'dayTime' WHEN hour(date_time) <= 6 OR hour(date_time) >= 20 THEN 'nightTime'
ELSE 'otherTime' END, date_time, extra, len(list_filter(string_split(extra, ''), x -> x = 'c'))
FROM bid WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000""",
    "q15": f"SELECT {_DAY} AS day, {_EVERY} FROM bid GROUP BY day",
    "q16": f"""\
SELECT channel, {_DAY} AS day, max(strftime(date_time, '%M'))::int, {_EVERY} FROM bid
GROUP BY channel, day""",
    "q17": f"""\
SELECT auction, {_DAY} AS day, {_COUNTS}, min(price), max(price), avg(price), sum(price) FROM bid
GROUP BY auction, day""",
    "q18": """\
SELECT auction, bidder, price, channel, url, date_time, extra FROM bid
QUALIFY row_number() OVER (PARTITION BY bidder, auction ORDER BY date_time DESC, id) = 1""",
    "q19": """\
SELECT auction, bidder, price, channel, url, date_time, extra, place FROM (
  SELECT *, (SELECT count(*) FROM bid o WHERE o.auction IS NOT DISTINCT FROM b.auction
  AND (o.price > b.price OR (o.price = b.price AND o.id <= b.id))) AS place FROM bid b)
WHERE place <= 10""",
    "q20": """\
SELECT auction, bidder, price, channel, url, b.date_time, b.extra, item_name, description,
initial_bid, reserve, a.date_time, expires, seller, category, a.extra
FROM auction a, bid b WHERE auction = a.id AND category = 10""",
    "q21": """\
SELECT auction, bidder, price, channel, CASE WHEN lower(channel) = 'apple' THEN '0'
WHEN lower(channel) = 'google' THEN '1' WHEN lower(channel) = 'facebook' THEN '2'
WHEN lower(channel) = 'baidu' THEN '3'
ELSE regexp_extract(url, '(&|^)channel_id=([^&]*)', 2) END FROM bid
WHERE regexp_matches(url, '(&|^)channel_id=([^&]*)')
OR lower(channel) IN ('apple', 'google', 'facebook', 'baidu')""",
    "q22": """\
SELECT auction, bidder, price, channel, coalesce(d[4], ''), coalesce(d[5], ''), coalesce(d[6], '')
FROM (SELECT *, string_split(url, '/') AS d FROM bid)""",
}
"""Of every query."""
