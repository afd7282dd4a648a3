/* ---
kind: pattern
doc: A test payment with a card, then at least two large ones abroad, within ten minutes.
within: 10 minutes
--- */
SELECT * FROM shop.payments MATCH_RECOGNIZE (
  PARTITION BY card_id ORDER BY paid_at
  MEASURES T.paid_at AS tested_at, LAST(L.paid_at) AS last_at,
           COUNT(L.payment_id) AS payments, SUM(L.amount) AS total
  ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW
  PATTERN (T L{2,})
  DEFINE T AS T.card_id IS NOT NULL AND T.amount < 1,
         L AS L.amount > 500 AND L.country <> T.country)
