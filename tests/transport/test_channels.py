"""Data connections: dialled and accepted, from the right peer only, closed again."""

from __future__ import annotations

import asyncio
import socket
from itertools import pairwise

import pytest

from xftp.errors import DataConnectionError
from xftp.protocol.addresses import Endpoint
from xftp.transport.active import ActiveChannel
from xftp.transport.connection import DataConnection
from xftp.transport.passive import PassiveChannel

from .support import HOST, dial, linked, listening


async def closed_by_peer(sock: socket.socket) -> bool:
    try:
        return await asyncio.get_running_loop().sock_recv(sock, 1) == b""
    except ConnectionResetError:
        return True


async def test_connections_meet() -> None:
    passive, active = linked(5)
    come: list[DataConnection] = []
    done = asyncio.Event()

    def on_connection(connection: DataConnection) -> None:
        come.append(connection)
        if len(come) == 5:
            done.set()

    passive.subscribe(on_connection, lambda: None)
    await asyncio.wait_for(done.wait(), 10)
    assert [connection.number for connection in come] == [0, 1, 2, 3, 4]
    assert not passive.may_bring_more
    await active.wait_for_first()
    for connection in come:
        connection.close()
    active.close()
    passive.close()


async def test_stranger_is_closed_and_takes_no_place() -> None:
    channel = listening(1)
    stranger = await dial(channel, "127.0.0.2")
    assert await closed_by_peer(stranger)
    assert channel.connections == []
    friend = await dial(channel)
    await channel.wait_for_first(10)
    assert len(channel.connections) == 1
    stranger.close()
    friend.close()
    channel.close()


async def test_more_than_the_limit_are_closed() -> None:
    channel = listening(2)
    socks = [await dial(channel) for _ in range(3)]
    assert await closed_by_peer(socks[2])
    assert len(channel.connections) == 2
    channel.close()
    for sock in socks:
        assert await closed_by_peer(sock), "close() closes what no transfer took"
        sock.close()


async def test_late_subscriber_gets_the_early_ones() -> None:
    channel = listening(3)
    socks = [await dial(channel) for _ in range(2)]
    await channel.wait_for_first(10)
    come: list[int] = []
    arrived = asyncio.Event()

    def on_connection(connection: DataConnection) -> None:
        come.append(connection.number)
        connection.close()
        if len(come) == 3:
            arrived.set()

    channel.subscribe(on_connection, lambda: None)
    socks.append(await dial(channel))
    await asyncio.wait_for(arrived.wait(), 10)
    assert come == [0, 1, 2]
    channel.close()
    for sock in socks:
        sock.close()


async def test_nobody_comes() -> None:
    channel = listening(1)
    with pytest.raises(DataConnectionError):
        await channel.wait_for_first(0.05)
    channel.close()


async def test_refused() -> None:
    with socket.socket() as unused:
        unused.bind((HOST, 0))
        port = unused.getsockname()[1]
        channel = ActiveChannel([Endpoint(HOST, port)] * 3)
        with pytest.raises(DataConnectionError, match="refused"):
            await channel.wait_for_first(10)
        channel.close()


async def test_one_of_two_is_refused() -> None:
    passive = listening(2)
    with socket.socket() as unused:
        unused.bind((HOST, 0))
        port = unused.getsockname()[1]
        channel = ActiveChannel([Endpoint(HOST, port), passive.endpoint])
        settled = asyncio.Event()
        channel.subscribe(lambda _: None, settled.set)
        await asyncio.wait_for(settled.wait(), 10)
    assert len(channel.connections) == 1
    assert len(channel.failures) == 1
    channel.connections[0].close()
    channel.close()
    passive.close()


CALL = b"whose I am\r\n"


async def heard_by(listener: socket.socket) -> bytes:
    """Accept a connection, and give what it begins with."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(10):
        sock, _ = await loop.sock_accept(listener)
        with sock:
            return await loop.sock_recv(sock, 100)


async def test_each_connection_begins_with_its_call() -> None:
    with socket.create_server((HOST, 0)) as listener:
        listener.setblocking(False)
        endpoint = Endpoint(HOST, listener.getsockname()[1])
        channel = ActiveChannel([endpoint] * 2, call=CALL)
        assert [await heard_by(listener) for _ in range(2)] == [CALL, CALL]
        channel.close()


@pytest.mark.parametrize("is_refused_first", [True, False])
async def test_who_comes_too_early_is_dialled_once_more(is_refused_first: bool) -> None:
    """The refusal may come before or after the peer has said that it is there."""
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
    channel = ActiveChannel([Endpoint(HOST, port)] * 2, call=CALL)
    if is_refused_first:
        await asyncio.wait(list(channel._dials))
        await asyncio.sleep(0)  # what is done when they end
        assert channel.may_bring_more
        assert not channel.failures
    else:
        for _ in range(2):  # both connect: what comes of it is seen later
            await asyncio.sleep(0)
    with socket.create_server((HOST, port)) as listener:
        listener.setblocking(False)
        channel.confirm()
        assert [await heard_by(listener) for _ in range(2)] == [CALL, CALL]
        await channel.wait_for_first(10)
    assert not channel.failures
    channel.close()


async def test_who_is_refused_once_more_has_failed() -> None:
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
    channel = ActiveChannel([Endpoint(HOST, port)] * 2, call=CALL)
    channel.confirm()
    with pytest.raises(DataConnectionError, match="Connection refused"):
        await channel.wait_for_first(10)
    channel.close()


async def test_port_range() -> None:
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(DataConnectionError, match="no free port"):
            PassiveChannel.listen(HOST, HOST, ports=(port,))


async def test_ports_are_not_predictable() -> None:
    """The kernel chooses them; sixty listeners never have the same, nor neighbours in a row."""
    channels = [listening(1) for _ in range(60)]
    ports = [channel.endpoint.port for channel in channels]
    for channel in channels:
        channel.close()
    assert len(set(ports)) == 60
    steps = [after - before for before, after in pairwise(ports)]
    assert len(set(steps)) > 30
