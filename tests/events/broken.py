"""Messages with broken bytes: cut off, flipped, exchanged, repeated."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random

from cdc.events.avro import HEADER
from tests.events.recorded import Message


def broken(messages: Sequence[Message], random: Random, count: int) -> Iterator[Message]:
    """Yield messages that are broken in one to three places, with new offsets."""
    whole = [message for message in messages if message.value is not None]
    for offset in range(count):
        message = random.choice(whole)
        data = bytearray(message.value or b"")
        for _ in range(random.choice([1, 1, 1, 2, 3])):
            _break(data, random)
        key = message.key
        if key is not None and random.random() < 0.2:
            key = key[: random.randrange(len(key))] + random.randbytes(random.randrange(2))
        yield replace(message, offset=offset, value=bytes(data), key=key)


def _break(data: bytearray, random: Random) -> None:
    """Break a place behind the header; one in forty in the header too."""
    first = 0 if random.random() < 0.025 else HEADER
    if len(data) <= first:
        return
    at = random.randrange(first, len(data))
    match random.randrange(7):
        case 0:
            del data[at:]
        case 1 | 2:
            data[at] ^= 1 << random.randrange(8)
        case 3:
            data[at] = random.choice([0, 1, 2, 3, 4, 0x7F, 0x80, 0x81, 0xFE, 0xFF])
        case 4:
            data[at : at + 1] = random.randbytes(random.randrange(4))
        case 5:
            # A number that takes more bytes than it needs, or than it may.
            data[at : at + 1] = bytes([data[at] | 0x80, *[0x80] * random.randrange(10), 0])
        case _:
            del data[at : at + random.randrange(1, 9)]
