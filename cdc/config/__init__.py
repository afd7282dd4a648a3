"""Define, load and check the configuration file, ``wal2lake.yaml``."""

from cdc.config.config import Config, Connect, Job, Lake, Monitor, Registry, Spark, Stack
from cdc.config.derived import Derived
from cdc.config.kafka import Kafka
from cdc.config.loading import DEFAULT_FILE, ENV_PREFIX, load
from cdc.config.masks import NO_MASKS, Masks, masks_of
from cdc.config.section import Section
from cdc.config.source import COPY, READ_LOST, LostPolicy, Source

__all__ = [
    "COPY",
    "DEFAULT_FILE",
    "ENV_PREFIX",
    "NO_MASKS",
    "READ_LOST",
    "Config",
    "Connect",
    "Derived",
    "Job",
    "Kafka",
    "Lake",
    "LostPolicy",
    "Masks",
    "Monitor",
    "Registry",
    "Section",
    "Source",
    "Spark",
    "Stack",
    "load",
    "masks_of",
]
