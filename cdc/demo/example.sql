-- A few rows that the demo inserts after the live changes, on a day that has no others, so that
-- what each of them does to the derived tables is easy to follow. Customer 1 lives in France.

insert into shop.orders (customer_id, status, total, placed_at) values
    (1, 'new', 100, '2026-02-14 09:00Z'),
    (1, 'new', 50, '2026-02-14 12:00Z'),
    (1, 'new', 20, '2026-02-14 18:00Z');

insert into shop.page_views (viewed_at, customer_id, path, duration_ms) values
    ('2026-02-14 10:00Z', 1, '/product/1', 1000),
    ('2026-02-14 10:20Z', 1, '/product/2', 2000),
    ('2026-02-14 10:40Z', 1, '/product/3', 3000);

insert into shop.payments (payment_id, order_id, amount, method, paid_at, card_id, country)
select md5('example' || n)::uuid, order_id, amount, 'card', placed_at + n * interval '1 minute', 1, country
from shop.orders
cross join (values (1, 0.50, 'fr'), (2, 600, 'us'), (3, 700, 'us')) as paid (n, amount, country)
where placed_at = '2026-02-14 09:00Z';
