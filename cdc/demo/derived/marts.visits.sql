/* ---
doc: Visits, which are page views of one customer with at most 30 minutes from each to the next.
--- */
SELECT w.customer_id, w.window_start AS began, max(w.viewed_at) AS last_view, count(*) AS views
FROM sessions(shop.page_views, viewed_at, INTERVAL '30 minutes', customer_id) AS w
WHERE w.customer_id IS NOT NULL
GROUP BY w.customer_id, w.window_start
