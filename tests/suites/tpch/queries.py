"""TPC-H's 22 queries as definitions of derived tables.

Their parameters are such that a small lake has rows for them. A table has no order, so ORDER BY and
the number of rows that are shown are left out. Averages of decimals are sums and counts, and months
are written as dates.
"""

from typing import Final

_PRICE: Final = "l_extendedprice::numeric(38,2) * (1 - l_discount)"
_YEAR: Final = "extract(year FROM {})"

QUERIES: Final[dict[str, str]] = {
    "q1": f"""\
SELECT l_returnflag, l_linestatus, sum(l_quantity) AS sum_qty,
sum(l_extendedprice) AS sum_base_price, sum({_PRICE}) AS sum_disc_price,
sum({_PRICE} * (1 + l_tax)) AS sum_charge,
sum(l_quantity)::double precision / NULLIF(count(*), 0) AS avg_qty,
sum(l_extendedprice)::double precision / NULLIF(count(*), 0) AS avg_price,
sum(l_discount)::double precision / NULLIF(count(*), 0) AS avg_disc, count(*) AS count_order
FROM shop.lineitem WHERE l_shipdate <= DATE '1998-09-02' GROUP BY l_returnflag, l_linestatus""",
    "q2": """\
SELECT s_acctbal, s_name, n_name, p_partkey, p_mfgr, s_address, s_phone, s_comment
FROM shop.part, shop.supplier, shop.partsupp, shop.nation, shop.region
WHERE p_partkey = ps_partkey AND s_suppkey = ps_suppkey AND p_size < 15 AND p_type LIKE '%BRASS'
AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'EUROPE'
AND ps_supplycost = (
  SELECT min(ps_supplycost) FROM shop.partsupp, shop.supplier, shop.nation, shop.region
  WHERE p_partkey = ps_partkey AND s_suppkey = ps_suppkey AND s_nationkey = n_nationkey
  AND n_regionkey = r_regionkey AND r_name = 'EUROPE')""",
    "q3": f"""\
SELECT l_orderkey, sum({_PRICE}) AS revenue, o_orderdate, o_shippriority
FROM shop.customer, shop.orders, shop.lineitem
WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey
AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'
GROUP BY l_orderkey, o_orderdate, o_shippriority""",
    "q4": """\
SELECT o_orderpriority, count(*) AS order_count FROM shop.orders
WHERE o_orderdate >= DATE '1993-07-01' AND o_orderdate < DATE '1993-10-01' AND EXISTS (
  SELECT 1 FROM shop.lineitem WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate)
GROUP BY o_orderpriority""",
    "q5": f"""\
SELECT n_name, sum({_PRICE}) AS revenue
FROM shop.customer, shop.orders, shop.lineitem, shop.supplier, shop.nation, shop.region
WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey
AND c_nationkey = s_nationkey AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey
AND r_name = 'ASIA' AND o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1995-01-01'
GROUP BY n_name""",
    "q6": """\
SELECT sum(l_extendedprice::numeric(38,2) * l_discount) AS revenue FROM shop.lineitem
WHERE l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01'
AND l_discount BETWEEN 0.06 - 0.01 AND 0.06 + 0.01 AND l_quantity < 24""",
    "q7": f"""\
SELECT supp_nation, cust_nation, l_year, sum(volume) AS revenue FROM (
  SELECT n1.n_name AS supp_nation, n2.n_name AS cust_nation,
  {_YEAR.format("l_shipdate")} AS l_year, {_PRICE} AS volume
  FROM shop.supplier, shop.lineitem, shop.orders, shop.customer, shop.nation AS n1,
  shop.nation AS n2
  WHERE s_suppkey = l_suppkey AND o_orderkey = l_orderkey AND c_custkey = o_custkey
  AND s_nationkey = n1.n_nationkey AND c_nationkey = n2.n_nationkey
  AND (n1.n_name = 'UNITED STATES' AND n2.n_name = 'PERU'
    OR n1.n_name = 'PERU' AND n2.n_name = 'UNITED STATES')
  AND l_shipdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31') AS shipping
GROUP BY supp_nation, cust_nation, l_year""",
    "q8": f"""\
SELECT o_year, sum(CASE WHEN nation = 'CANADA' THEN volume ELSE 0 END)::double precision
/ NULLIF(sum(volume), 0) AS mkt_share FROM (
  SELECT {_YEAR.format("o_orderdate")} AS o_year, {_PRICE} AS volume, n2.n_name AS nation
  FROM shop.part, shop.supplier, shop.lineitem, shop.orders, shop.customer, shop.nation AS n1,
  shop.nation AS n2, shop.region
  WHERE p_partkey = l_partkey AND s_suppkey = l_suppkey AND l_orderkey = o_orderkey
  AND o_custkey = c_custkey AND c_nationkey = n1.n_nationkey AND n1.n_regionkey = r_regionkey
  AND r_name = 'AMERICA' AND s_nationkey = n2.n_nationkey
  AND o_orderdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31'
  AND p_type LIKE 'ECONOMY%') AS all_nations
GROUP BY o_year""",
    "q9": f"""\
SELECT nation, o_year, sum(amount) AS sum_profit FROM (
  SELECT n_name AS nation, {_YEAR.format("o_orderdate")} AS o_year,
  {_PRICE} - ps_supplycost::numeric(38,2) * l_quantity AS amount
  FROM shop.part, shop.supplier, shop.lineitem, shop.partsupp, shop.orders, shop.nation
  WHERE s_suppkey = l_suppkey AND ps_suppkey = l_suppkey AND ps_partkey = l_partkey
  AND p_partkey = l_partkey AND o_orderkey = l_orderkey AND s_nationkey = n_nationkey
  AND p_name LIKE '%green%') AS profit
GROUP BY nation, o_year""",
    "q10": f"""\
SELECT c_custkey, c_name, sum({_PRICE}) AS revenue, c_acctbal, n_name, c_address, c_phone, c_comment
FROM shop.customer, shop.orders, shop.lineitem, shop.nation
WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND o_orderdate >= DATE '1993-10-01'
AND o_orderdate < DATE '1994-01-01' AND l_returnflag = 'R' AND c_nationkey = n_nationkey
GROUP BY c_custkey, c_name, c_acctbal, c_phone, n_name, c_address, c_comment""",
    "q11": """\
SELECT ps_partkey, sum(ps_supplycost::numeric(38,2) * ps_availqty) AS value
FROM shop.partsupp, shop.supplier, shop.nation
WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name = 'PERU'
GROUP BY ps_partkey HAVING sum(ps_supplycost::numeric(38,2) * ps_availqty) > (
  SELECT sum(ps_supplycost::numeric(38,2) * ps_availqty) * 0.005
  FROM shop.partsupp, shop.supplier, shop.nation
  WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey AND n_name = 'PERU')""",
    "q12": """\
SELECT l_shipmode, sum(CASE WHEN o_orderpriority = '1-URGENT' OR o_orderpriority = '2-HIGH'
  THEN 1 ELSE 0 END) AS high_line_count,
sum(CASE WHEN o_orderpriority <> '1-URGENT' AND o_orderpriority <> '2-HIGH'
  THEN 1 ELSE 0 END) AS low_line_count
FROM shop.orders, shop.lineitem WHERE o_orderkey = l_orderkey AND l_shipmode IN ('MAIL', 'SHIP')
AND l_commitdate < l_receiptdate AND l_shipdate < l_commitdate
AND l_receiptdate >= DATE '1994-01-01' AND l_receiptdate < DATE '1995-01-01'
GROUP BY l_shipmode""",
    "q13": """\
SELECT c_count, count(*) AS custdist FROM (
  SELECT c_custkey, count(o_orderkey) AS c_count FROM shop.customer LEFT JOIN shop.orders
  ON c_custkey = o_custkey AND o_comment NOT LIKE '%special%requests%' GROUP BY c_custkey
) AS c_orders GROUP BY c_count""",
    "q14": f"""\
SELECT 100 * (sum(CASE WHEN p_type LIKE 'PROMO%' THEN {_PRICE} ELSE 0 END)::double precision
/ NULLIF(sum({_PRICE}), 0)) AS promo_revenue FROM shop.lineitem, shop.part
WHERE l_partkey = p_partkey AND l_shipdate >= DATE '1995-09-01'
AND l_shipdate < DATE '1995-10-01'""",
    "q15": f"""\
WITH revenue AS (SELECT l_suppkey AS supplier_no, sum({_PRICE}) AS total_revenue
  FROM shop.lineitem WHERE l_shipdate >= DATE '1996-01-01' AND l_shipdate < DATE '1996-04-01'
  GROUP BY l_suppkey)
SELECT s_suppkey, s_name, s_address, s_phone, total_revenue FROM shop.supplier, revenue
WHERE s_suppkey = supplier_no AND total_revenue = (SELECT max(total_revenue) FROM revenue)""",
    "q16": """\
SELECT p_brand, p_type, p_size, count(DISTINCT ps_suppkey) AS supplier_cnt
FROM shop.partsupp, shop.part WHERE p_partkey = ps_partkey AND p_brand <> 'Brand#45'
AND p_type NOT LIKE 'MEDIUM POLISHED%' AND p_size IN (49, 14, 23, 45, 19, 3, 36, 9)
AND ps_suppkey NOT IN (
  SELECT s_suppkey FROM shop.supplier WHERE s_comment LIKE '%Customer%Complaints%')
GROUP BY p_brand, p_type, p_size""",
    "q17": """\
SELECT sum(l_extendedprice)::double precision / 7.0 AS avg_yearly FROM shop.lineitem, shop.part
WHERE p_partkey = l_partkey AND p_brand LIKE 'Brand#2%' AND l_quantity < (
  SELECT 0.2::double precision * avg(l_quantity::double precision) FROM shop.lineitem
  WHERE l_partkey = p_partkey)""",
    "q18": """\
SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity) AS quantity
FROM shop.customer, shop.orders, shop.lineitem
WHERE o_orderkey IN (
  SELECT l_orderkey FROM shop.lineitem GROUP BY l_orderkey HAVING sum(l_quantity) > 250)
AND c_custkey = o_custkey AND o_orderkey = l_orderkey
GROUP BY c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice""",
    "q19": f"""\
SELECT sum({_PRICE}) AS revenue FROM shop.lineitem, shop.part
WHERE (p_partkey = l_partkey AND p_brand LIKE 'Brand#1%'
  AND p_container IN ('SM CASE', 'SM BOX', 'SM PACK', 'SM PKG')
  AND l_quantity >= 1 AND l_quantity <= 1 + 10 AND p_size BETWEEN 1 AND 5
  AND l_shipmode IN ('AIR', 'AIR REG') AND l_shipinstruct = 'DELIVER IN PERSON')
OR (p_partkey = l_partkey AND p_brand LIKE 'Brand#2%'
  AND p_container IN ('MED BAG', 'MED BOX', 'MED PKG', 'MED PACK')
  AND l_quantity >= 10 AND l_quantity <= 10 + 10 AND p_size BETWEEN 1 AND 10
  AND l_shipmode IN ('AIR', 'AIR REG') AND l_shipinstruct = 'DELIVER IN PERSON')
OR (p_partkey = l_partkey AND p_brand LIKE 'Brand#3%'
  AND p_container IN ('LG CASE', 'LG BOX', 'LG PACK', 'LG PKG')
  AND l_quantity >= 20 AND l_quantity <= 20 + 10 AND p_size BETWEEN 1 AND 15
  AND l_shipmode IN ('AIR', 'AIR REG') AND l_shipinstruct = 'DELIVER IN PERSON')""",
    "q20": """\
SELECT s_name, s_address FROM shop.supplier, shop.nation WHERE s_suppkey IN (
  SELECT ps_suppkey FROM shop.partsupp
  WHERE ps_partkey IN (SELECT p_partkey FROM shop.part WHERE p_name LIKE '%green%')
  AND ps_availqty > (SELECT 0.5 * sum(l_quantity) FROM shop.lineitem
    WHERE l_partkey = ps_partkey AND l_suppkey = ps_suppkey
    AND l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1995-01-01'))
AND s_nationkey = n_nationkey""",
    "q21": """\
SELECT s_name, count(*) AS numwait FROM shop.supplier, shop.lineitem AS l1, shop.orders, shop.nation
WHERE s_suppkey = l1.l_suppkey AND o_orderkey = l1.l_orderkey AND o_orderstatus = 'F'
AND l1.l_receiptdate > l1.l_commitdate
AND EXISTS (SELECT 1 FROM shop.lineitem AS l2
  WHERE l2.l_orderkey = l1.l_orderkey AND l2.l_suppkey <> l1.l_suppkey)
AND NOT EXISTS (SELECT 1 FROM shop.lineitem AS l3 WHERE l3.l_orderkey = l1.l_orderkey
  AND l3.l_suppkey <> l1.l_suppkey AND l3.l_receiptdate > l3.l_commitdate)
AND s_nationkey = n_nationkey AND n_name <> 'SAUDI ARABIA'
GROUP BY s_name""",
    "q22": """\
SELECT cntrycode, count(*) AS numcust, sum(c_acctbal) AS totacctbal FROM (
  SELECT substring(c_phone, 1, 2) AS cntrycode, c_acctbal FROM shop.customer
  WHERE substring(c_phone, 1, 2) IN ('13', '31', '23', '29', '30', '18', '17')
  AND c_acctbal::double precision > (SELECT avg(c_acctbal::double precision) FROM shop.customer
    WHERE c_acctbal > 0.00 AND substring(c_phone, 1, 2)
    IN ('13', '31', '23', '29', '30', '18', '17'))
  AND NOT EXISTS (SELECT 1 FROM shop.orders WHERE o_custkey = c_custkey)) AS custsale
GROUP BY cntrycode""",
}
