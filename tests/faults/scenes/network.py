"""Network scenarios between parts that are not embedded; each returns when the trouble is over."""

from functools import partial
from typing import Final

from tests.faults.bank.checks import Scenario
from tests.faults.scenes.outside import CLIENTS
from tests.faults.scenes.scene import ALL, Scene
from tests.faults.scenes.trouble import SHORT_SECONDS, TROUBLES, elapse, troubled


def undisturbed(scene: Scene) -> None:
    """Check that every proxy is used: traffic around a proxy would escape its trouble."""
    elapse(SHORT_SECONDS)
    unused = [pair for pair, proxy in scene.proxies.items() if not proxy.passed]
    assert unused == [], f"nothing has gone through {unused}"


def server_is(what: str, server: str, client: str, scene: Scene) -> None:
    """Trouble a server while a new column's schema is registered and asked for."""
    with troubled(scene, TROUBLES[what], server, client):
        scene.bank.execute(f"ALTER TABLE bank.ring ADD COLUMN {server}_{what}_{client} int")
        elapse(TROUBLES[what].seconds)


def worker_is(what: str, scene: Scene) -> None:
    """Trouble the worker; ``status`` must not wait for a worker that does not answer."""
    trouble = TROUBLES[what]
    with troubled(scene, trouble, "connect"):
        status = scene.bank.any_facts("status")
        assert (status["connector"] is None) == (what != "slow")
        elapse(trouble.seconds)


NETWORK: Final[dict[str, Scenario]] = {
    "undisturbed": undisturbed,  # the control
    **{
        f"{server} {what}": partial(server_is, what, server, ALL)
        for server in ("kafka", "registry")
        for what in TROUBLES
    },
    **{f"connect {what}": partial(worker_is, what) for what in TROUBLES},
    **{
        f"{server} stalled for {client}": partial(server_is, "stalled", server, client)
        for server, clients in CLIENTS.items()
        for client in clients
        if len(clients) > 1
    },
}
"""Each server is in trouble for all of its clients, or for one while the others reach it."""
