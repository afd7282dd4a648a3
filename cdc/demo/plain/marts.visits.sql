with views as (
    select *, viewed_at - lag(viewed_at) over own as pause
    from shop.page_views where customer_id is not null
    window own as (partition by customer_id order by viewed_at)
),
numbered as (
    select *, count(*) filter (where pause is null or pause > interval '30 minutes')
        over (partition by customer_id order by viewed_at) as visit
    from views
)
select customer_id, min(viewed_at) as began, max(viewed_at) as last_view, count(*) as views
from numbered
group by customer_id, visit
