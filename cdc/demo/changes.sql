-- What the demo then changes and deletes, in one transaction.

update shop.orders set total = 150 where placed_at = '2026-02-14 09:00Z';
delete from shop.orders where placed_at = '2026-02-14 18:00Z';
delete from shop.page_views where customer_id = 1 and viewed_at = '2026-02-14 10:20Z';
delete from shop.payments where payment_id = md5('example2')::uuid;
