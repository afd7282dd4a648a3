/* ---
doc: Orders and revenue of each day, in UTC, by the country of the customer.
--- */
SELECT (o.placed_at AT TIME ZONE 'UTC')::date AS day, c.country,
       count(*) AS orders, sum(o.total) AS revenue
FROM shop.orders o
JOIN shop.customers c ON c.customer_id = o.customer_id
GROUP BY (o.placed_at AT TIME ZONE 'UTC')::date, c.country
