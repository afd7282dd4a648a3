"""The shop's Postgres before anything watches it."""

from cdc.config import Config, Connect, Kafka, Registry
from cdc.demo import shop
from cdc.stack.embedded import running

ELSEWHERE = "http://127.0.0.1:1"  # never asked: it only says that these need not be started


def filled_source(config: Config, *, scale: float) -> dict[str, int]:
    """Start the embedded Postgres alone, make the shop in it, stop it; rows by table.

    The tables have to be there before the connector is, and ``up`` starts both.
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
