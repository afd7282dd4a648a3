"""TPC-H's text of its queries, for DuckDB, where the definition is not that text.

The others are the definition itself, over plain tables, with decimals that are not cast.
"""

from typing import Final

from tests.suites.tpch.queries import QUERIES as DEFINED

_PRICE: Final = "l_extendedprice * (1 - l_discount)"
_TEXT: Final[dict[str, str]] = {
    "q1": f"""\
SELECT l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice), sum({_PRICE}),
sum({_PRICE} * (1 + l_tax)), avg(l_quantity), avg(l_extendedprice), avg(l_discount), count(*)
FROM lineitem WHERE l_shipdate <= date '1998-12-01' - INTERVAL '90' DAY GROUP BY ALL""",
    "q8": f"""\
SELECT year(o_orderdate) AS o_year, sum(CASE WHEN supplying.n_name = 'CANADA' THEN {_PRICE}
ELSE 0 END) / sum({_PRICE}) FROM lineitem JOIN part ON p_partkey = l_partkey
JOIN supplier ON s_suppkey = l_suppkey JOIN nation supplying ON s_nationkey = supplying.n_nationkey
JOIN orders ON l_orderkey = o_orderkey JOIN customer ON o_custkey = c_custkey
JOIN nation n ON c_nationkey = n.n_nationkey JOIN region ON n.n_regionkey = r_regionkey
WHERE r_name = 'AMERICA' AND year(o_orderdate) IN (1995, 1996) AND p_type LIKE 'ECONOMY%'
GROUP BY o_year""",
    "q14": f"""\
SELECT 100.00 * sum(CASE WHEN p_type LIKE 'PROMO%' THEN {_PRICE} ELSE 0 END) / sum({_PRICE})
FROM lineitem JOIN part ON l_partkey = p_partkey
WHERE l_shipdate >= date '1995-09-01' AND l_shipdate < date '1995-09-01' + INTERVAL '1' MONTH""",
    "q17": """\
SELECT sum(l_extendedprice) / 7.0 FROM lineitem l JOIN part ON p_partkey = l_partkey
JOIN (SELECT l_partkey AS k, sum(l_quantity) AS q, count(*) AS n FROM lineitem GROUP BY k)
ON k = l.l_partkey WHERE p_brand LIKE 'Brand#2%' AND 5 * l_quantity * n < q""",
    "q22": """\
WITH chosen AS (SELECT *, left(c_phone, 2) AS code FROM customer
  WHERE code IN ('13', '31', '23', '29', '30', '18', '17'))
SELECT code, count(*), sum(c_acctbal) FROM chosen ANTI JOIN orders ON o_custkey = c_custkey
WHERE c_acctbal > (SELECT avg(c_acctbal) FROM chosen WHERE c_acctbal > 0) GROUP BY code""",
}
QUERIES: Final[dict[str, str]] = {
    name: text.replace("shop.", "").replace("::numeric(38,2)", "") for name, text in DEFINED.items()
} | _TEXT
