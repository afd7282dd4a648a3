"""Define, load and check the configuration file, ``wal2lake.yaml``."""

from cdc.config.config import Config, Connect, Job, Lake, Monitor, Registry, Spark, Stack
from cdc.config.kafka import Kafka
from cdc.config.loading import DEFAULT_FILE, ENV_PREFIX, load
from cdc.config.section import Section
from cdc.config.source import COPY, READ_LOST, LostPolicy, Source

__all__ = [
    "COPY",
    "DEFAULT_FILE",
    "ENV_PREFIX",
    "READ_LOST",
    "Config",
    "Connect",
    "Job",
    "Kafka",
    "Lake",
    "LostPolicy",
    "Monitor",
    "Registry",
    "Section",
    "Source",
    "Spark",
    "Stack",
    "load",
]
