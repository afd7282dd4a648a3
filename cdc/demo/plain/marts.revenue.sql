select (placed_at at time zone 'UTC')::date as day, country, count(*) as orders, sum(total) as revenue
from shop.orders join shop.customers using (customer_id)
group by 1, 2
