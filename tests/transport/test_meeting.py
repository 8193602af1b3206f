"""Connections that both ends dial: the sender takes one way, the receiver finds out which."""

from __future__ import annotations

import asyncio
import socket

import pytest

from xftp.errors import DataConnectionError
from xftp.protocol.addresses import Endpoint
from xftp.transport.active import ActiveChannel
from xftp.transport.connection import DataConnection
from xftp.transport.meeting import MeetingChannel

from .support import HOST, dial, listening

TIMEOUT_S = 10.0


def closed_port() -> int:
    """Give a port that nobody listens on."""
    with socket.socket() as sock:
        sock.bind((HOST, 0))
        return int(sock.getsockname()[1])


def dialling(*ports: int) -> ActiveChannel:
    return ActiveChannel([Endpoint(HOST, port) for port in ports])


async def first_byte(connection: DataConnection | socket.socket) -> bytes:
    """Wait for a byte; b"" is the end of the stream. Raises ConnectionResetError."""
    sock = connection if isinstance(connection, socket.socket) else connection.sock
    async with asyncio.timeout(TIMEOUT_S):
        return await asyncio.get_running_loop().sock_recv(sock, 1)


async def is_reset(sock: socket.socket) -> bool:
    """Tell how a connection ended: by a reset, or politely."""
    try:
        assert await first_byte(sock) == b""
    except ConnectionResetError:
        return True
    return False


async def pair(count: int = 2) -> tuple[MeetingChannel, MeetingChannel]:
    """Give the two ends of connections that meet: the sender's, which has chosen to dial and closed
    its listener, and the receiver's."""
    theirs, ours = listening(count, count), listening(count, count)
    sender = MeetingChannel([dialling(*[ours.endpoint.port] * count), theirs], decides=True)
    sender.replaces = True
    await sender.wait_for_first(TIMEOUT_S)
    return sender, MeetingChannel([ours, dialling(*[closed_port()] * count)], decides=False)


async def test_the_sender_takes_the_first_way_and_the_receiver_follows() -> None:
    sender, receiver = await pair()
    assert sender.dials, "it was sooner with dialling than anybody with its listener"
    sender.connections[0].say(b"x")
    await receiver.wait_for_first(TIMEOUT_S)
    assert await first_byte(receiver.connections[0]) == b"x"
    come: list[DataConnection] = []
    all_came = asyncio.Event()

    def on_connection(connection: DataConnection) -> None:
        come.append(connection)
        if len(come) == 2:
            all_came.set()

    receiver.subscribe(on_connection, lambda: None)
    await asyncio.wait_for(all_came.wait(), TIMEOUT_S)
    assert receiver.connections == come
    assert receiver.alive == 2
    assert not receiver.may_bring_more
    for connection in [*come, *sender.connections]:
        connection.close()
    sender.close()
    receiver.close()


async def test_a_receiver_that_cannot_be_dialled_dials() -> None:
    theirs = listening(2, 2)
    sender = MeetingChannel([dialling(closed_port(), closed_port()), theirs], decides=True)
    ours = listening(2, 2)
    receiver = MeetingChannel([ours, dialling(*[theirs.endpoint.port] * 2)], decides=False)
    receiver.replaces = True
    await sender.wait_for_first(TIMEOUT_S)
    sender.connections[0].say(b"x")
    await receiver.wait_for_first(TIMEOUT_S)
    assert await first_byte(receiver.connections[0]) == b"x"
    assert receiver.dials and receiver.replaces
    assert ours.is_discarded
    for channel in (sender, receiver):
        channel.close()


async def test_what_comes_by_the_other_way_is_reset() -> None:
    ways = [listening(1), listening(1)]
    channel = MeetingChannel(ways, decides=True)
    # Made by the kernel before the event loop sees either.
    dialled = [socket.create_connection((HOST, way.endpoint.port)) for way in ways]
    await channel.wait_for_first(TIMEOUT_S)
    for way, sock in zip(ways, dialled, strict=True):
        sock.setblocking(False)
        if way.connections is not channel.connections:
            assert await is_reset(sock)
    assert sum(way.is_discarded for way in ways) == 1
    channel.close()
    for sock in dialled:
        sock.close()


async def test_closed_before_any_choice_everything_is_reset() -> None:
    theirs = listening(2)
    channel = MeetingChannel([theirs], decides=False)
    dialled = [await dial(theirs)]
    await theirs.wait_for_first(TIMEOUT_S)
    # Made by the kernel, and not yet seen by the event loop.
    dialled.append(socket.create_connection((HOST, theirs.endpoint.port)))
    dialled[-1].setblocking(False)
    channel.close()
    for sock in dialled:
        assert await is_reset(sock)
        sock.close()


async def test_a_reset_is_not_taken_for_the_way_that_was_chosen() -> None:
    ours, theirs = listening(1, 1), listening(1, 1)
    receiver = MeetingChannel([ours, dialling(theirs.endpoint.port)], decides=False)
    await theirs.wait_for_first(TIMEOUT_S)
    theirs.discard()
    sock = await dial(ours)
    waiting = asyncio.create_task(receiver.wait_for_first(TIMEOUT_S))
    await asyncio.get_running_loop().sock_sendall(sock, b"x")
    await waiting
    assert receiver.connections == ours.connections
    sock.close()
    receiver.close()


async def test_an_end_without_a_byte_is_heard_too() -> None:
    ours = listening(1, 1)
    receiver = MeetingChannel([ours, dialling(closed_port())], decides=False)
    sock = await dial(ours)
    sock.close()
    await receiver.wait_for_first(TIMEOUT_S)
    assert receiver.connections == ours.connections
    receiver.close()


async def test_without_any_connection_the_reason_is_told() -> None:
    channel = MeetingChannel([dialling(closed_port()), dialling(closed_port())], decides=False)
    with pytest.raises(DataConnectionError, match="refused"):
        await channel.wait_for_first(TIMEOUT_S)
    channel.close()


async def test_waiting_may_be_broken_off_and_begun_again() -> None:
    ours = listening(1, 1)
    channel = MeetingChannel([ours, dialling(closed_port())], decides=False)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await channel.wait_for_first(TIMEOUT_S)
    sock = await dial(ours)
    await asyncio.get_running_loop().sock_sendall(sock, b"x")
    await channel.wait_for_first(TIMEOUT_S)
    assert len(channel.connections) == 1
    sock.close()
    channel.close()
