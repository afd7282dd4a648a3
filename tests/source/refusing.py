"""Simulate a server that refuses every connection with a given SQLSTATE and message."""

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_TLS_OR_GSS = 8  # the length of a request for encryption


@contextmanager
def refusing(state: str, severity: str, message: str) -> Iterator[str]:
    """Run such a server, without TLS, and yield its URL."""
    fields_by_key = {b"S": severity, b"V": "FATAL", b"C": state, b"M": message}
    fields = b"".join(key + text.encode() + b"\0" for key, text in fields_by_key.items()) + b"\0"
    answer = b"E" + struct.pack("!I", len(fields) + 4) + fields
    with socket.create_server(("127.0.0.1", 0)) as listening:
        serving = threading.Thread(target=_serve, args=(listening, answer))
        serving.start()
        try:
            yield f"postgresql://u@127.0.0.1:{listening.getsockname()[1]}/d"
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            serving.join()


def _serve(listening: socket.socket, answer: bytes) -> None:
    while True:
        try:
            client, _ = listening.accept()
        except OSError:  # the listening socket was shut down
            return
        with client, client.makefile("rwb") as stream:
            while _asks_for_encryption(stream.read(4), stream):
                stream.write(b"N")
                stream.flush()
            stream.write(answer)
            stream.flush()


def _asks_for_encryption(length: bytes, stream: object) -> bool:
    size = struct.unpack("!I", length)[0]
    stream.read(size - 4)  # type: ignore[attr-defined]
    return bool(size == _TLS_OR_GSS)
