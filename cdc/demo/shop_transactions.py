"""Acts as the shop's customers and clerks, with one function for each kind of transaction.

Every writer keeps to its own share of the ids, so that writers neither wait for each other nor
deadlock, and a run with the same seed makes the same choices.
"""

from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, LiteralString

import psycopg


class GivenUpError(Exception):
    """Reports that a customer leaves before the end, to roll the transaction back."""


@dataclass(kw_only=True)
class Clerk:
    """Makes one writer's changes, with its cursor, random choices and share of the ids."""

    cursor: psycopg.Cursor[Any]
    rng: Random
    sizes: Mapping[str, int]  # rows of each table at the start
    share: int  # this writer's number, from 0
    shares: int  # the number of writers
    changed: Counter[str] = field(default_factory=Counter)  # rows by table in this transaction
    orders: deque[int] = field(default_factory=lambda: deque(maxlen=5000))  # placed by this writer
    cancelled: deque[int] = field(default_factory=lambda: deque(maxlen=500))

    def change(self, table: str, query: LiteralString, *values: object) -> int:
        """Execute a statement; count and return the rows that it changed."""
        self.cursor.execute(query, values)
        self.changed[table] += self.cursor.rowcount
        return self.cursor.rowcount

    def pick(self, table: str) -> int:
        """Choose an id of this writer's share among the rows that the table started with."""
        return self.rng.randrange(self.sizes[table] // self.shares) * self.shares + self.share + 1

    def pick_order(self) -> int:
        """Choose an order that this writer placed, or one that was there at the start."""
        if self.orders and self.rng.random() < 0.5:  # noqa: PLR2004 - a coin
            return self.rng.choice(self.orders)
        return self.pick("orders")


def place_order(clerk: Clerk) -> None:
    """Place an order of one to four products, reduce their stock and compute the total."""
    products = sorted({clerk.pick("products") for _ in range(clerk.rng.randint(1, 4))})
    clerk.change(
        "orders",
        "insert into shop.orders (customer_id, status, total, placed_at)"
        " values (%s, 'new', 0, clock_timestamp()) returning order_id",
        clerk.pick("customers"),
    )
    (order,) = clerk.cursor.fetchone() or (0,)
    clerk.change(
        "order_lines",
        "insert into shop.order_lines"
        " select %s, row_number() over (order by product_id), product_id, %s, price"
        " from shop.products where product_id = any(%s)",
        order,
        clerk.rng.randint(1, 5),
        products,
    )
    clerk.change(
        "products",
        "update shop.products set stock = stock - 1, updated_at = now() where product_id = any(%s)",
        products,
    )
    clerk.change(
        "orders",
        "update shop.orders set total = (select sum(quantity * unit_price) from shop.order_lines"
        " where order_lines.order_id = orders.order_id) where order_id = %s",
        order,
    )
    clerk.orders.append(order)


def pay(clerk: Clerk) -> None:
    """Pay an order that is new: update it and insert a payment."""
    order = clerk.pick_order()
    if clerk.change(
        "orders",
        "update shop.orders set status = 'paid' where order_id = %s and status = 'new'",
        order,
    ):
        clerk.change(
            "payments",
            "insert into shop.payments"
            " select gen_random_uuid(), order_id, total, 'card', clock_timestamp(), customer_id,"
            " country from shop.orders join shop.customers using (customer_id) where order_id = %s",
            order,
        )


def defraud(clerk: Clerk) -> None:
    """Test somebody's card with a small payment, then pay twice with it abroad."""
    clerk.change(
        "payments",
        "insert into shop.payments select gen_random_uuid(), order_id, amount, 'card',"
        " clock_timestamp() + second * interval '1 second', customer_id, country"
        " from shop.orders cross join (values (0, 0.50, 'de'), (1, 700, 'us'), (2, 900, 'us'))"
        " as paid (second, amount, country) where order_id = %s",
        clerk.pick_order(),
    )


def ship(clerk: Clerk) -> None:
    """Ship an order, with a parcel number in its note."""
    clerk.change(
        "orders",
        "update shop.orders set status = 'shipped', note = %s where order_id = %s",
        f"parcel {clerk.rng.randrange(10**9)}",
        clerk.pick_order(),
    )


def cancel(clerk: Clerk) -> None:
    """Delete an order with its payments and lines."""
    order = clerk.pick_order()
    clerk.change("payments", "delete from shop.payments where order_id = %s", order)
    clerk.change("order_lines", "delete from shop.order_lines where order_id = %s", order)
    if clerk.change("orders", "delete from shop.orders where order_id = %s", order):
        clerk.cancelled.append(order)


def reorder(clerk: Clerk) -> None:
    """Insert a cancelled order again: its key is deleted and inserted in two transactions."""
    if not clerk.cancelled:
        return
    order = clerk.cancelled.popleft()
    clerk.change(
        "orders",
        "insert into shop.orders values (%s, %s, 'new', 1, clock_timestamp(), 'again')",
        order,
        clerk.pick("customers"),
    )
    clerk.change(
        "order_lines",
        "insert into shop.order_lines values (%s, 1, %s, 1, 1)",
        order,
        clerk.pick("products"),
    )


def replace_line(clerk: Clerk) -> None:
    """Replace a line of an order: its key is deleted and inserted in one transaction."""
    order = clerk.pick_order()
    query: LiteralString = "delete from shop.order_lines where order_id = %s and line_no = 1"
    if clerk.change("order_lines", query, order):
        clerk.change(
            "order_lines",
            "insert into shop.order_lines select %s, 1, product_id, %s, price"
            " from shop.products where product_id = %s",
            order,
            clerk.rng.randint(1, 9),
            clerk.pick("products"),
        )


def browse(clerk: Clerk) -> None:
    """Insert page views, a few at once."""
    clerk.change(
        "page_views",
        "insert into shop.page_views select clock_timestamp(), %s, '/product/' || n, n * 100"
        " from generate_series(1, %s) as n",
        clerk.pick("customers"),
        clerk.rng.randint(1, 5),
    )


def edit_customer(clerk: Clerk) -> None:
    """Update a customer: text, an array that may be NULL or contain NULL, an exact decimal."""
    clerk.change(
        "customers",
        "update shop.customers set email = %s, tags = %s, credit = credit + 0.01"
        " where customer_id = %s",
        f"new{clerk.rng.randrange(10**6)}@example.com",
        clerk.rng.choice([None, [], ["vip"], ["a", None, "c"]]),
        clerk.pick("customers"),
    )


def reprice(clerk: Clerk) -> None:
    """Raise the price of a product by one percent."""
    clerk.change(
        "products",
        "update shop.products set price = round(price * 1.01, 2), updated_at = now()"
        " where product_id = %s",
        clerk.pick("products"),
    )


def review(clerk: Clerk) -> None:
    """Update a row but not its large text, which its change event therefore does not carry."""
    clerk.change(
        "product_descriptions",
        "update shop.product_descriptions set revision = revision + 1, reviewed_at = now()"
        " where product_id = %s",
        clerk.pick("product_descriptions"),
    )


def rewrite(clerk: Clerk) -> None:
    """Replace the large text of a row."""
    clerk.change(
        "product_descriptions",
        "update shop.product_descriptions set revision = revision + 1, description ="
        " (select string_agg(md5(%s || ':' || part), '') from generate_series(1, 310) as part)"
        " where product_id = %s",
        str(clerk.rng.random()),
        clerk.pick("product_descriptions"),
    )


def renumber_payment(clerk: Clerk) -> None:
    """Change the primary key of a payment."""
    clerk.change(
        "payments",
        "update shop.payments set payment_id = gen_random_uuid() where payment_id ="
        " (select payment_id from shop.payments where order_id = %s limit 1)",
        clerk.pick_order(),
    )


def give_up(clerk: Clerk) -> None:
    """Place an order and leave before the commit; raises GivenUpError."""
    place_order(clerk)
    clerk.orders.pop()
    raise GivenUpError


MIX: Final[Mapping[Callable[[Clerk], None], int]] = {
    place_order: 30,
    pay: 14,
    ship: 8,
    cancel: 7,
    reorder: 5,
    replace_line: 4,
    browse: 14,
    edit_customer: 6,
    reprice: 4,
    review: 4,
    rewrite: 1,
    renumber_payment: 2,
    defraud: 1,
    give_up: 1,
}


def choose(rng: Random) -> Callable[[Clerk], None]:
    """Choose the next kind of transaction by the weights of ``MIX``."""
    return rng.choices(list(MIX), weights=list(MIX.values()))[0]
