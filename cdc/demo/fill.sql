-- Rows for the snapshot, generated inside the server: 222 500 at shop.scale = 1.
-- Reproducible: the same seed gives the same rows; texts are md5 sums of their number.

select setseed(0.42);

insert into shop.customers (customer_id, name, email, country, credit, birthday, tags, created_at)
select
    n,
    'Customer ' || n,
    'customer' || n || '@example.com',
    (array['de', 'fr', 'it', 'nl', null])[1 + n % 5],
    case when n % 7 > 0 then round((random() * 1000)::numeric, 2) end,
    date '1940-01-01' + (random() * 25000)::integer,
    case n % 4 when 0 then null when 1 then '{}' else array['tag' || n % 10, 'vip'] end,
    timestamptz '2026-01-01' + n * interval '7 minutes'
from generate_series(1, (20000 * current_setting('shop.scale')::numeric)::integer) as n;

insert into shop.products (product_id, sku, name, price, stock, weight_kg, attributes, updated_at)
select
    n,
    md5('sku' || n)::uuid,
    'Product ' || n,
    round((1 + random() * 500)::numeric, 2),
    1000,
    case when n % 3 > 0 then random() * 20 end,
    jsonb_build_object('colour', (array['red', 'green', 'blue'])[1 + n % 3], 'rank', n % 100),
    timestamptz '2026-01-01'
from generate_series(1, (2000 * current_setting('shop.scale')::numeric)::integer) as n;

insert into shop.product_descriptions (product_id, description, revision)
select
    n,
    (select string_agg(md5(n || ':' || part), '') from generate_series(1, 310) as part),
    1
from generate_series(1, (500 * current_setting('shop.scale')::numeric)::integer) as n;

insert into shop.orders (order_id, customer_id, status, total, placed_at, note)
select
    n,
    1 + n % (20000 * current_setting('shop.scale')::numeric)::integer,
    (array['new', 'paid', 'shipped', 'returned'])[1 + n % 4]::shop.order_status,
    0,
    timestamptz '2026-06-01' + n * interval '3 minutes',
    case when n % 10 = 0 then 'leave at the door, order ' || n end
from generate_series(1, (40000 * current_setting('shop.scale')::numeric)::integer) as n;

insert into shop.order_lines (order_id, line_no, product_id, quantity, unit_price)
select
    o,
    line_no,
    1 + (o * 7 + line_no * 13) % (2000 * current_setting('shop.scale')::numeric)::integer,
    1 + (o % 3)::integer,
    round((1 + random() * 500)::numeric, 2)
from generate_series(1, (40000 * current_setting('shop.scale')::numeric)::integer) as o
cross join lateral generate_series(1, 2 + (o % 4 < 3)::integer) as line_no;

update shop.orders set total = lines.total
from (
    select order_id, sum(quantity * unit_price) as total from shop.order_lines group by order_id
) as lines
where lines.order_id = orders.order_id;

-- Every customer has one card, of the same number, and uses it at home.
insert into shop.payments (payment_id, order_id, amount, method, paid_at, card_id, country)
select
    md5('payment' || order_id)::uuid,
    order_id,
    total,
    (array['card', 'transfer', 'invoice'])[1 + order_id % 3],
    placed_at + interval '1 hour',
    case when order_id % 3 = 0 then customer_id end,
    country
from shop.orders
join shop.customers using (customer_id)
where status <> 'new';

insert into shop.page_views (viewed_at, customer_id, path, duration_ms)
select
    timestamptz '2026-06-01' + n * interval '1 second',
    case when n % 5 > 0 then 1 + n % 1000 end,
    '/product/' || 1 + n % 2000,
    (random() * 60000)::integer
from generate_series(1, (20000 * current_setting('shop.scale')::numeric)::integer) as n;

-- New rows get ids after those above; the statistics are the last part of the fill.
select setval(pg_get_serial_sequence('shop.customers', 'customer_id'), max(customer_id)) from shop.customers;
select setval(pg_get_serial_sequence('shop.orders', 'order_id'), max(order_id)) from shop.orders;
analyze;
