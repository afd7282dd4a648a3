"""Real corruptions of the state that a pipeline depends on."""

import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import httpx
from confluent_kafka.admin import (  # type: ignore[attr-defined] # not all in its __all__
    AdminClient,
    NewPartitions,
)
from deltalake import DeltaTable

from cdc.config import Kafka
from cdc.errors import Reason
from cdc.kafka.broker import Broker
from cdc.kafka.empty_topic import empty_topic
from cdc.kafka.topic_watch import existing_topics
from cdc.kafka.topics import TopicSpec, delete_topics, ensure_topics
from cdc.stack.embedded import await_ready
from cdc.stack.process.process import Process
from tests.faults.bank.armed import NAME, Armed
from tests.faults.bank.bank import SQL
from tests.faults.scenes.disturbances import frozen
from tests.servers.process import ProcessServer
from tests.waiting import until

TABLES: Final = ("accounts", "counters", "flicker", "visits")
TOPIC: Final = f"{NAME}.bank.flicker"
NO_ARCHIVE: Final = "restore_command = '/bin/false'\n"
KEPT: Final = {
    "cleanup.policy": "compact",
    "min.compaction.lag.ms": str(Kafka().min_compaction_lag_ms),
    "delete.retention.ms": str(Kafka().delete_retention_ms),
}
"""The settings of wal2lake's topics: a topic with other settings is refused because of them."""


@dataclass(frozen=True, slots=True)
class Corruption:
    """What is corrupted, the reason code that reports it, and the commands that repair it."""

    reason: Reason
    do: Callable[["Vault"], None]
    remedy: tuple[str, ...] = ()  # if empty, a new epoch


@dataclass(frozen=True, slots=True)
class Vault:
    """Gives access to the state of an installation that nobody should touch."""

    bank: Armed
    backup: Path  # of the source's cluster, taken before the first start

    @property
    def kafka(self) -> str:
        """Return the broker's address."""
        return str(self._endpoints["kafka"])

    @property
    def worker(self) -> str:
        """Return the connector's URL at the worker."""
        return f"{self._endpoints['connect']}/connectors/{NAME}"

    @property
    def source(self) -> ProcessServer:
        """Return the source's Postgres process."""
        server = self.bank.servers["postgres"]
        assert isinstance(server, ProcessServer)
        return server

    @property
    def cluster(self) -> Path:
        """Return the directory of the source's cluster."""
        return self.source.state.data("postgres")

    def table(self, name: str) -> Path:
        """Return the directory of a bank's table in the lake."""
        return self.bank.folder / "lake" / "bank" / name

    def stop_connector(self) -> None:
        """Stop the connector and wait until nobody reads the slot."""
        httpx.put(f"{self.worker}/stop", timeout=60).raise_for_status()
        until(lambda: not self._tasks())
        until(lambda: not self._is_slot_read())

    def forget_position(self) -> None:
        """Delete the offsets of the stopped connector."""
        httpx.delete(f"{self.worker}/offsets", timeout=60).raise_for_status()

    def resume_connector(self) -> None:
        """Resume the stopped connector."""
        httpx.put(f"{self.worker}/resume", timeout=60).raise_for_status()

    def drop_slot(self) -> None:
        """Drop the slot once nobody reads it."""
        until(lambda: not self._is_slot_read())
        self.bank.execute(f"SELECT pg_drop_replication_slot('{NAME}')")

    @property
    def _endpoints(self) -> dict[str, str]:
        endpoints: dict[str, str] = json.loads((self.bank.state_dir / "endpoints.json").read_text())
        return endpoints

    def _tasks(self) -> object:
        return httpx.get(f"{self.worker}/status", timeout=60).json()["tasks"]

    def _is_slot_read(self) -> bool:
        with self.bank.connect() as connection:
            row = connection.execute(
                "SELECT 1 FROM pg_replication_slots WHERE active AND slot_name = %s", (NAME,)
            ).fetchone()
        return row is not None


def slot_is_dropped(vault: Vault) -> None:
    """Drop the slot and commit changes after it."""
    vault.drop_slot()
    unseen(vault)


def slot_is_dropped_while_it_is_read(vault: Vault) -> None:
    """Drop the slot under a connector that then resumes."""
    vault.stop_connector()
    vault.drop_slot()
    unseen(vault)
    vault.resume_connector()


def slot_is_made_anew(vault: Vault) -> None:
    """Drop the slot and create another of its name, with changes in between."""
    slot_is_dropped(vault)
    vault.bank.execute(f"SELECT pg_create_logical_replication_slot('{NAME}', 'pgoutput')")
    unseen(vault)


def slot_is_lost(vault: Vault) -> None:
    """Lose the slot: Postgres removes WAL that it needs, beyond the limit."""
    command = vault.source.embedded.command()
    tight = replace(command, arguments=(*command.arguments, "-cmax_slot_wal_keep_size=1MB"))
    vault.source.stop()
    vault.source.process = Process("postgres", tight, vault.source.state)
    await_ready(vault.source.embedded, vault.source.process)
    with vault.bank.connect() as connection:
        connection.execute("DELETE FROM bank.visits")
        for _ in range(4):
            connection.execute("SELECT pg_switch_wal()")
            connection.execute("INSERT INTO bank.visits VALUES ('lost', 1)")
        connection.execute("CHECKPOINT")
        query = "SELECT wal_status FROM pg_replication_slots WHERE slot_name = %s"
        assert connection.execute(query, (NAME,)).fetchone() == ("lost",)
    vault.source.stop()
    vault.source.start()


def unseen(vault: Vault) -> None:
    """Commit changes that no slot retains."""
    vault.bank.execute("DELETE FROM bank.visits")


def position_is_deleted(vault: Vault) -> None:
    """Delete the connector's offsets."""
    vault.stop_connector()
    vault.forget_position()


def snapshot_is_taken_again(vault: Vault) -> None:
    """Delete the connector's offsets, so that it takes its snapshot again."""
    position_is_deleted(vault)
    vault.resume_connector()


def topic_is_deleted(vault: Vault) -> None:
    """Delete a table's topic."""
    vault.stop_connector()
    delete_topics(Broker(vault.kafka), [TOPIC])
    until(lambda: not existing_topics(Broker(vault.kafka), [TOPIC]))


def topic_is_made_again(vault: Vault) -> None:
    """Delete a table's topic and create another of its name."""
    topic_is_deleted(vault)
    ensure_topics(Broker(vault.kafka), [TopicSpec(TOPIC, KEPT)])
    vault.resume_connector()


def topic_has_more_partitions(vault: Vault) -> None:
    """Give a table's topic more partitions."""
    client = AdminClient({"bootstrap.servers": vault.kafka})
    client.create_partitions([NewPartitions(TOPIC, 3)])[TOPIC].result()
    until(lambda: existing_topics(Broker(vault.kafka), [TOPIC])[TOPIC].partitions == 3)


def topic_is_shortened(vault: Vault) -> None:
    """Empty the topic while the job is suspended, so that some events have not landed."""
    before = existing_topics(Broker(vault.kafka), [TOPIC])[TOPIC].end
    with frozen(vault.bank, "job"):
        vault.bank.execute("UPDATE bank.flicker SET n = n + 1")
        until(lambda: existing_topics(Broker(vault.kafka), [TOPIC])[TOPIC].end > before)
        empty_topic(Broker(vault.kafka), TOPIC)


def source_is_restored(vault: Vault) -> None:
    """Restore the cluster from a backup taken before wal2lake's first start."""
    vault.source.stop()
    shutil.rmtree(vault.cluster)
    subprocess.run(["cp", "-a", str(vault.backup), str(vault.cluster)], check=True)
    vault.source.start()


def source_is_recovered(vault: Vault) -> None:
    """Recover the cluster to the end of its WAL, as a promotion does.

    Nothing is lost, but nobody can tell that.
    """
    vault.source.stop()
    for name, text in (("recovery.signal", ""), ("postgresql.auto.conf", NO_ARCHIVE)):
        file = vault.cluster / name
        file.write_text(text)
        subprocess.run(["chown", f"--reference={vault.cluster}", str(file)], check=True)
    vault.source.start()


def source_is_replaced(vault: Vault) -> None:
    """Replace the source by a new cluster with the same tables."""
    vault.source.stop()
    shutil.rmtree(vault.cluster)
    vault.source.start()
    vault.bank.execute(SQL)


def table_is_edited(vault: Vault) -> None:
    """Delete rows of a table in the lake."""
    DeltaTable(str(vault.table("accounts"))).delete("id <= 3")


def table_is_restored(vault: Vault) -> None:
    """Restore a table in the lake to its previous version."""
    table = DeltaTable(str(vault.table("counters")))
    table.restore(table.version() - 1)


def table_is_deleted(vault: Vault) -> None:
    """Delete a table's directory."""
    shutil.rmtree(vault.table("visits"))


def table_is_an_older_copy(vault: Vault) -> None:
    """Remove the table's newest commits, as in an older backup of its files."""
    log = vault.table("flicker") / "_delta_log"
    (first, *newer) = sorted(log.glob("*.json"))
    checkpoints = log.glob("*checkpoint*")
    sums = (file for file in log.glob("*.crc") if file.stem != first.stem)
    for file in dict.fromkeys((*newer, *checkpoints, *sums)):  # some are sums of checkpoints
        file.unlink()


def table_is_unreadable(vault: Vault) -> None:
    """Overwrite the commits of a table with garbage."""
    for file in (vault.table("accounts") / "_delta_log").glob("*.json"):
        file.write_text("{garbage")


NEW_EPOCH: Final = ("up --detach --new-epoch", "resnapshot --all")
AT_THE_START: Final = {
    "slot dropped": Corruption(Reason.SLOT_GONE, slot_is_dropped),
    "slot invalidated": Corruption(Reason.SLOT_LOST, slot_is_lost),
    "slot made anew": Corruption(Reason.SLOT_RECREATED, slot_is_made_anew),
    "source recovered": Corruption(Reason.SOURCE_PROMOTED, source_is_recovered),
    "source restored": Corruption(Reason.SOURCE_RESTORED, source_is_restored),
    "source replaced": Corruption(Reason.SOURCE_REPLACED, source_is_replaced),
}
"""Corruptions between two runs; the next start refuses."""
MEANWHILE: Final = {
    "more partitions": Corruption(Reason.TOPIC_PARTITIONS, topic_has_more_partitions),
    "topic made again": Corruption(Reason.TOPIC_RECREATED, topic_is_made_again),
    "topic shortened": Corruption(Reason.TOPIC_SHORTENED, topic_is_shortened),
    "slot dropped": Corruption(Reason.SLOT_GONE, slot_is_dropped_while_it_is_read),
}
"""Corruptions while everything runs; the job ends before the next cut, and starts refuse."""
BEHIND: Final = {
    "position deleted": Corruption(Reason.POSITION_LOST, position_is_deleted),
    "topic deleted": Corruption(Reason.TOPIC_GONE, topic_is_deleted),
}
"""Corruptions while everything runs that the job cannot see; the next start refuses."""
OF_TABLES: Final = {
    "edited": Corruption(Reason.TABLE_EDITED, table_is_edited, ("replay bank.accounts",)),
    "restored": Corruption(Reason.TABLE_RESTORED, table_is_restored, ("replay bank.counters",)),
    "deleted": Corruption(Reason.TABLE_GONE, table_is_deleted, ("resnapshot bank.visits",)),
    "older copy": Corruption(
        Reason.TABLE_OLDER, table_is_an_older_copy, ("resnapshot bank.flicker",)
    ),
    "unreadable": Corruption(
        Reason.TABLE_UNREADABLE, table_is_unreadable, ("resnapshot bank.accounts",)
    ),
}
"""Corruptions while everything runs; the table stops, the others go on."""
TAKEN_AGAIN: Final = Corruption(
    Reason.SNAPSHOT_REPEATED, snapshot_is_taken_again, ("resnapshot --stopped",)
)
"""With ``snapshot: connector``, as no other connector takes a snapshot."""
