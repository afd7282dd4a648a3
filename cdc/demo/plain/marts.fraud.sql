-- The payments with a card after a small one, until the first that is not large and abroad.
select
    test.card_id, test.paid_at as tested_at, max(later.paid_at) as last_at,
    count(*) as payments, sum(later.amount) as total
from shop.payments as test
join shop.payments as later
    on later.card_id = test.card_id
    and (later.paid_at, later.payment_id) > (test.paid_at, test.payment_id)
    and later.paid_at <= test.paid_at + interval '10 minutes'
where test.amount < 1 and not exists (
    select from shop.payments as other
    where other.card_id = test.card_id
        and (other.paid_at, other.payment_id) > (test.paid_at, test.payment_id)
        and (other.paid_at, other.payment_id) <= (later.paid_at, later.payment_id)
        and (other.amount > 500 and other.country <> test.country) is not true
)
group by test.payment_id
having count(*) >= 2
