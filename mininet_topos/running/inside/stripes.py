"""XFTP of 1996: chunks in turn on N connections, each write and each read waited for.

stripes.py receive|send '{"address": …, "port": …, "connections": …, "size_bytes": …, …}'

Allman 1997 section 2.3: the first XFTP wrote a chunk of 8 KB to a connection and waited until the
system had taken all of it, though others could have sent. Each chunk has the sequence number of
appendix B before it. A connection says its number with its first byte, since the receiver takes
connections in the order they come.
"""

from __future__ import annotations

import os
import select
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from .common import Ended, run_end, say, tuned_socket

SEQUENCE_BYTES = 4


def receive(told: Mapping[str, Any]) -> dict[str, float]:
    """Take the connections, and read whole chunks from each in its turn."""
    count, size, chunk = told["connections"], told["size_bytes"], told["chunk_bytes"]
    by_number: dict[int, socket.socket] = {}
    began_s, received = 0.0, 0
    try:
        with tuned_socket(told) as listener:
            listener.bind((told["address"], told["port"]))
            listener.listen(count)
            say("ready")
            for _ in range(count):
                connection, _ = listener.accept()
                began_s = began_s or time.monotonic()
                by_number[connection.recv(1)[0]] = connection
        turn = 0
        while received < size:
            wanted = min(chunk, size - received)
            _read_exactly(by_number[turn % count], SEQUENCE_BYTES + wanted)
            received += wanted
            turn += 1
    except Ended:
        pass
    finally:
        for connection in by_number.values():
            connection.close()
    return {"bytes": received, "seconds": time.monotonic() - began_s if began_s else 0.0}


def send(told: Mapping[str, Any]) -> dict[str, float]:
    """Connect all, and write whole chunks to each in its turn."""
    size, chunk = told["size_bytes"], told["chunk_bytes"]
    connections: list[socket.socket] = []
    began_s, sent = time.monotonic(), 0
    try:
        connections += [tuned_socket(told) for _ in range(told["connections"])]
        _connect_all(connections, (told["address"], told["port"]))
        for number, connection in enumerate(connections):
            connection.sendall(bytes([number]))
        say("ready")
        turn = 0
        while sent < size:
            payload = min(chunk, size - sent)
            record = turn.to_bytes(SEQUENCE_BYTES, "big") + bytes(payload)
            connections[turn % len(connections)].sendall(record)
            sent += payload
            turn += 1
        for connection in connections:
            connection.shutdown(socket.SHUT_WR)
        for connection in connections:
            connection.recv(1)
    except Ended:
        pass
    finally:
        for connection in connections:
            connection.close()
    return {"bytes": sent, "seconds": time.monotonic() - began_s}


def _connect_all(connections: Sequence[socket.socket], address: tuple[str, int]) -> None:
    """Connect all at once, in one round trip. Raises OSError."""
    for connection in connections:
        connection.setblocking(False)
        connection.connect_ex(address)
    for connection in connections:
        select.select([], [connection], [])
        failed = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if failed:
            raise OSError(failed, os.strerror(failed))
        connection.setblocking(True)


def _read_exactly(connection: socket.socket, count: int) -> None:
    while count:
        data = connection.recv(count)
        if not data:
            raise ConnectionError("the sender closed a connection before the end")
        count -= len(data)


if __name__ == "__main__":
    sys.exit(run_end(receive, send))
