"""Fills the shop's Postgres before anything follows it."""

from cdc.config import Config, Connect, Kafka, Registry
from cdc.demo import shop
from cdc.stack.embedded import running

ELSEWHERE = "http://127.0.0.1:1"  # never contacted: a configured server is not started


def filled_source(config: Config, *, scale: float) -> dict[str, int]:
    """Start the embedded Postgres alone, create the shop in it, and stop it.

    The tables must exist before the connector, and ``up`` starts both. Returns the rows by table.
    """
    alone = config.model_copy(
        update={
            "kafka": Kafka(bootstrap_servers=ELSEWHERE),
            "connect": Connect(url=ELSEWHERE),
            "registry": Registry(url=ELSEWHERE),
        }
    )
    with running(alone) as endpoints:
        return shop.create(endpoints.source_url, scale)
