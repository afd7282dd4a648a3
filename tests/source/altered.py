"""Change settings of a broker or a topic for a while."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka.admin import (  # type: ignore[attr-defined] # not all in its __all__
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

_SET, _UNSET = AlterConfigOpType.SET, AlterConfigOpType.DELETE


@contextmanager
def altered(
    bootstrap: str, kind: ResourceType, names: tuple[str, ...], setting: str, value: str
) -> Iterator[None]:
    """Give a setting of each resource a value inside the block, and its default afterwards."""
    _alter(bootstrap, kind, names, ConfigEntry(setting, value, incremental_operation=_SET))
    try:
        yield
    finally:
        _alter(bootstrap, kind, names, ConfigEntry(setting, None, incremental_operation=_UNSET))


def _alter(bootstrap: str, kind: ResourceType, names: tuple[str, ...], entry: ConfigEntry) -> None:
    resources = [ConfigResource(kind, name, incremental_configs=[entry]) for name in names]
    client = AdminClient({"bootstrap.servers": bootstrap})
    answers: dict[Any, Any] = client.incremental_alter_configs(resources)
    for answer in answers.values():
        answer.result()
