"""Look for a text in everything that an installation has written, also where it is compressed."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from tests.waiting import until

_QUIET_SECONDS: Final = 20.0
_PARQUET_END: Final = b"PAR1"


def files_with(folder: Path, text: str) -> list[str]:
    """Return the files below the folder whose bytes hold the text, or whose Parquet does."""
    forms = [text.encode(), text.encode("utf-16-le"), text.encode().hex().encode()]
    paths = (p for p in sorted(folder.rglob("*")) if p.is_file() and not p.is_symlink())
    return [str(path.relative_to(folder)) for path in paths if _is_in(path, forms, text)]


def _is_in(path: Path, forms: list[bytes], text: str) -> bool:
    data = _read(path)
    if any(form in data for form in forms):
        return True
    return path.suffix == ".parquet" and _holds(_whole(path), text)


def _read(path: Path) -> bytes:
    """Return the bytes of a file; none if it has been removed meanwhile."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def _whole(path: Path) -> bytes:
    """Return the bytes of a Parquet file once nobody writes it any more."""
    until(lambda: not path.exists() or _read(path).endswith(_PARQUET_END))
    return _read(path)


def _holds(data: bytes, text: str) -> bool:
    """Return whether any value or statistic of a Parquet file holds the text."""
    if not data:
        return False
    file = pq.ParquetFile(pa.BufferReader(data))
    if text in str(file.metadata.to_dict()):
        return True
    return any(text in str(_texts(batch)) for batch in file.iter_batches())


def _texts(batch: pa.RecordBatch) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = batch.to_pylist()
    return rows


def messages(kafka: str) -> Iterator[tuple[str, bytes]]:
    """Yield topic and bytes (key, value and headers) of every message in every topic."""
    consumer = Consumer(
        {
            "bootstrap.servers": kafka,
            "group.id": "traces",
            "enable.auto.commit": False,
            "isolation.level": "read_uncommitted",
            "enable.partition.eof": True,
        }
    )
    try:
        topics = consumer.list_topics(timeout=_QUIET_SECONDS).topics
        places = [
            TopicPartition(t, p, OFFSET_BEGINNING)
            for t, topic in topics.items()
            for p in topic.partitions
        ]
        consumer.assign(places)
        left = {(place.topic, place.partition) for place in places}
        while left:
            message = consumer.poll(_QUIET_SECONDS)
            assert message is not None, f"nothing more came of {sorted(left)}"
            if message.error():
                left.discard((message.topic(), message.partition()))
                continue
            parts = [message.key(), message.value(), str(message.headers()).encode()]
            yield str(message.topic()), b"\0".join(bytes(part or b"") for part in parts)
    finally:
        consumer.close()


def topics_with(state_dir: Path, text: str) -> list[str]:
    """Return the topics of the embedded broker that hold the text."""
    kafka = json.loads((state_dir / "endpoints.json").read_text())["kafka"]
    return sorted({topic for topic, data in messages(kafka) if text.encode() in data})
