"""Writes the queries of Nexmark as definitions of derived tables.

q10, q12 and q13 are restated without processing time: by the time of the event, and by the side
table as it is at the cut. Beside q4, q6 and q17 an average is kept as a sum and a count. q21 takes
what its regular expression finds by splitting the text, and writes the collation of its channels.
"""

from typing import Final

_WON: Final = """\
SELECT a.id, a.category, a.seller, max(b.price) AS final FROM shop.auction AS a
JOIN shop.bid AS b ON a.id = b.auction
WHERE b.date_time BETWEEN a.date_time AND a.expires GROUP BY a.id, a.category, a.seller"""
_COUNTS: Final = """\
count(*) AS total_bids,
count(*) FILTER (WHERE b.price < 10000) AS rank1_bids,
count(*) FILTER (WHERE b.price >= 10000 AND b.price < 1000000) AS rank2_bids,
count(*) FILTER (WHERE b.price >= 1000000) AS rank3_bids"""
_DISTINCT: Final = ",\n".join(
    f"count(DISTINCT b.{column}){condition} AS {prefix}_{column}s"
    for column in ("bidder", "auction")
    for prefix, condition in (
        ("total", ""),
        ("rank1", " FILTER (WHERE b.price < 10000)"),
        ("rank2", " FILTER (WHERE b.price >= 10000 AND b.price < 1000000)"),
        ("rank3", " FILTER (WHERE b.price >= 1000000)"),
    )
)
_PER_SESSION: Final = """\
SELECT w.bidder, count(*) AS bid_count, w.window_start AS starttime, w.window_end AS endtime
FROM {form} AS w GROUP BY w.bidder, w.window_start, w.window_end"""
_PER_WINDOW: Final = """\
SELECT auction, count(*) AS num, window_start AS starttime
FROM hop(shop.bid, date_time, INTERVAL '2 seconds', INTERVAL '10 seconds')
GROUP BY auction, window_start"""
_LAST: Final = "lag({}, {}) OVER (PARTITION BY q.seller ORDER BY q.ended, q.id)"

QUERIES: Final[dict[str, str]] = {
    "q0": "SELECT auction, bidder, price, date_time, extra FROM shop.bid",
    "q1": "SELECT auction, bidder, 0.908 * price AS price, date_time, extra FROM shop.bid",
    "q2": "SELECT auction, price FROM shop.bid WHERE mod(auction, 13) = 0",
    "q3": """\
SELECT p.name, p.city, p.state, a.id FROM shop.auction AS a JOIN shop.person AS p
ON a.seller = p.id WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')""",
    "q4": f"""\
SELECT q.category, sum(q.final) AS total, count(*) AS auctions FROM ({_WON}) AS q
GROUP BY q.category""",
    "q5": f"""\
SELECT r.auction, r.num, r.starttime FROM (
  SELECT n.auction, n.num, n.starttime, rank() OVER (PARTITION BY n.starttime ORDER BY n.num DESC)
  AS place FROM ({_PER_WINDOW}) AS n) AS r
WHERE r.place = 1""",
    "q6": f"""\
SELECT q.seller, q.id, q.final
  {"".join(f"+ coalesce({_LAST.format('q.final', back)}, 0)" for back in range(1, 11))} AS total,
  row_number() OVER (PARTITION BY q.seller ORDER BY q.ended, q.id) AS auctions
FROM (SELECT a.id, a.seller, a.expires AS ended, max(b.price) AS final FROM shop.auction AS a
JOIN shop.bid AS b ON a.id = b.auction WHERE b.date_time BETWEEN a.date_time AND a.expires
GROUP BY a.id, a.seller, a.expires) AS q""",
    "q7": """\
SELECT r.auction, r.price, r.bidder, r.date_time, r.extra FROM (
  SELECT w.auction, w.price, w.bidder, w.date_time, w.extra,
  rank() OVER (PARTITION BY w.window_start ORDER BY w.price DESC) AS place
  FROM tumble(shop.bid, date_time, INTERVAL '10 seconds') AS w WHERE w.price IS NOT NULL) AS r
WHERE r.place = 1""",
    "q8": """\
SELECT DISTINCT p.id, p.name, p.window_start AS starttime
FROM tumble(shop.person, date_time, INTERVAL '10 seconds') AS p
JOIN tumble(shop.auction, date_time, INTERVAL '10 seconds') AS a
ON p.id = a.seller AND p.window_start = a.window_start""",
    "q9": """\
SELECT r.id, r.item_name, r.description, r.initial_bid, r.reserve, r.date_time, r.expires,
r.seller, r.category, r.extra, r.auction, r.bidder, r.price, r.bid_date_time, r.bid_extra FROM (
  SELECT a.id, a.item_name, a.description, a.initial_bid, a.reserve, a.date_time, a.expires,
  a.seller, a.category, a.extra, b.auction, b.bidder, b.price, b.date_time AS bid_date_time,
  b.extra AS bid_extra,
  row_number() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.date_time, b.id) AS place
  FROM shop.auction AS a JOIN shop.bid AS b ON a.id = b.auction
  WHERE b.date_time BETWEEN a.date_time AND a.expires) AS r
WHERE r.place = 1""",
    "q10": """\
SELECT auction, bidder, price, date_time, extra, date_time::date AS dt,
extract(hour FROM date_time) AS hh, extract(minute FROM date_time) AS mm FROM shop.bid""",
    "q11": _PER_SESSION.format(form="sessions(shop.bid, date_time, INTERVAL '10 seconds', bidder)"),
    "q12": _PER_SESSION.format(form="tumble(shop.bid, date_time, INTERVAL '10 seconds')"),
    "q13": """\
SELECT b.auction, b.bidder, b.price, b.date_time, s.value FROM shop.bid AS b
JOIN shop.side_input AS s ON mod(b.auction, 20) = s.key""",
    "q14": """\
SELECT auction, bidder, 0.908 * price AS price,
CASE WHEN extract(hour FROM date_time) BETWEEN 8 AND 18 THEN 'dayTime'
WHEN extract(hour FROM date_time) <= 6 OR extract(hour FROM date_time) >= 20 THEN 'nightTime'
ELSE 'otherTime' END AS bid_time_type, date_time, extra,
length(extra) - length(replace(extra, 'c', '')) AS c_counts
FROM shop.bid WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000""",
    "q15": f"""\
SELECT b.date_time::date AS day, {_COUNTS},\n{_DISTINCT} FROM shop.bid AS b GROUP BY 1""",
    "q16": f"""\
SELECT b.channel, b.date_time::date AS day, max(extract(minute FROM b.date_time)) AS minute,
{_COUNTS},\n{_DISTINCT} FROM shop.bid AS b GROUP BY b.channel, b.date_time::date""",
    "q17": f"""\
SELECT b.auction, b.date_time::date AS day, {_COUNTS}, min(b.price) AS min_price,
max(b.price) AS max_price, sum(b.price)::double precision / NULLIF(count(b.price), 0) AS avg_price,
sum(b.price) AS sum_price FROM shop.bid AS b GROUP BY b.auction, b.date_time::date""",
    "q18": """\
SELECT r.auction, r.bidder, r.price, r.channel, r.url, r.date_time, r.extra FROM (
  SELECT b.auction, b.bidder, b.price, b.channel, b.url, b.date_time, b.extra,
  row_number() OVER (PARTITION BY b.bidder, b.auction ORDER BY b.date_time DESC, b.id) AS place
  FROM shop.bid AS b) AS r
WHERE r.place = 1""",
    "q19": """\
SELECT r.auction, r.bidder, r.price, r.channel, r.url, r.date_time, r.extra, r.place FROM (
  SELECT b.auction, b.bidder, b.price, b.channel, b.url, b.date_time, b.extra,
  row_number() OVER (PARTITION BY b.auction ORDER BY b.price DESC, b.id) AS place
  FROM shop.bid AS b) AS r
WHERE r.place <= 10""",
    "q20": """\
SELECT b.auction, b.bidder, b.price, b.channel, b.url, b.date_time, b.extra, a.item_name,
a.description, a.initial_bid, a.reserve, a.date_time AS auction_date_time, a.expires, a.seller,
a.category, a.extra AS auction_extra
FROM shop.bid AS b JOIN shop.auction AS a ON b.auction = a.id WHERE a.category = 10""",
    "q21": """\
SELECT auction, bidder, price, channel,
CASE lower(channel COLLATE "C") WHEN 'apple' THEN '0' WHEN 'google' THEN '1'
WHEN 'facebook' THEN '2' WHEN 'baidu' THEN '3'
ELSE split_part(split_part('&' || url, '&channel_id=', 2), '&', 1) END AS channel_id FROM shop.bid
WHERE strpos('&' || url, '&channel_id=') > 0
OR lower(channel COLLATE "C") IN ('apple', 'google', 'facebook', 'baidu')""",
    "q22": """\
SELECT auction, bidder, price, channel, split_part(url, '/', 4) AS dir1,
split_part(url, '/', 5) AS dir2, split_part(url, '/', 6) AS dir3 FROM shop.bid""",
}
AVERAGE_OF_ROWS: Final = f"""\
SELECT q.seller, avg(q.final::double precision) OVER (PARTITION BY q.seller ORDER BY q.id
ROWS BETWEEN 10 PRECEDING AND CURRENT ROW) AS average FROM ({_WON}) AS q"""
"""q6 as it is written, with a frame of rows."""
