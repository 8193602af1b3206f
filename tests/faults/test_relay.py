"""The relay stops at the byte of the moment, and what fell silent is silent to TCP."""

from __future__ import annotations

import asyncio
import fcntl
import os
import socket
import struct
import termios
from collections.abc import Awaitable, Callable
from dataclasses import replace

from .relay import Line, Moment, Relay, relaying
from .stage import find_route

PORT = 0
"""Of the passive ports: the first."""


async def connected(
    happen: Callable[[Line, Relay], None], at_bytes: int, talk: Callable[..., Awaitable[None]]
) -> None:
    """Relay one data connection on which the daemon's side sends, and let `talk` have both ends."""
    route = find_route(os.getpid())
    relay: Relay

    async def on_moment(line: Line) -> None:
        happen(line, relay)

    with socket.create_server((route.daemon_host, route.passive_ports[PORT])) as listener:
        listener.setblocking(False)
        moment = Moment(at_bytes, on_moment)
        relay = Relay(replace(route, daemon_port=9), "down", moment)
        async with relaying(relay):
            loop = asyncio.get_running_loop()
            with socket.socket() as client:
                client.setblocking(False)
                await loop.sock_connect(client, (route.own_host, route.passive_ports[PORT]))
                daemon, _ = await loop.sock_accept(listener)
                with daemon:
                    daemon.setblocking(False)
                    await talk(client, daemon, relay)


async def received(sock: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = await asyncio.get_running_loop().sock_recv(sock, count - len(data))
        assert more
        data += more
    return data


def unacknowledged(sock: socket.socket) -> int:
    answer = fcntl.ioctl(sock, termios.TIOCOUTQ, bytes(4))
    count: int = struct.unpack("i", answer)[0]
    return count


async def test_it_happens_at_the_byte() -> None:
    seen = []

    async def talk(client: socket.socket, daemon: socket.socket, relay: Relay) -> None:
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(daemon, bytes(1000))
        assert len(await received(client, 600)) == 600
        try:
            while await loop.sock_recv(client, 1000):
                pass
        except ConnectionResetError:
            seen.append("reset")

    await connected(lambda line, _: line.reset(), 600, talk)
    assert seen == ["reset"]


async def test_what_is_silent_acknowledges_nothing_until_it_goes_on() -> None:
    async def talk(client: socket.socket, daemon: socket.socket, relay: Relay) -> None:
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(daemon, bytes(600))
        await received(client, 600)
        await relay.moment.happened.wait()
        await loop.sock_sendall(daemon, b"lost for now")
        await loop.sock_sendall(client, b"this way too")
        await asyncio.sleep(0.3)  # a live kernel acknowledges within 40 ms
        assert unacknowledged(daemon) == unacknowledged(client) == 12
        relay.resume()
        assert await received(client, 12) == b"lost for now"
        assert await received(daemon, 12) == b"this way too"
        assert unacknowledged(daemon) == 0

    await connected(lambda line, _: line.silence(), 600, talk)


async def test_while_all_is_silent_nobody_connects() -> None:
    async def talk(client: socket.socket, daemon: socket.socket, relay: Relay) -> None:
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(daemon, bytes(1))
        await relay.moment.happened.wait()
        with socket.socket() as other:
            other.setblocking(False)
            connecting = asyncio.create_task(loop.sock_connect(other, client.getpeername()))
            assert not (await asyncio.wait([connecting], timeout=0.3))[0]
            relay.resume()
            await connecting  # with the SYN that is repeated after a second

    await connected(lambda _, relay: relay.silence(control=False), 1, talk)


async def test_own_ports_are_replaced_by_free_ones() -> None:
    route = find_route(os.getpid())

    async def nothing(_: Line) -> None:
        pass

    relay = Relay(replace(route, daemon_port=9), "up", Moment(0, nothing))
    with socket.create_server(("127.0.0.1", 0)) as client, socket.socket() as taken:
        port = client.getsockname()[1]
        taken.bind((route.own_host, port))
        async with relaying(relay):
            command = b"TYPE I\r\nMPRT IP4|TCP|127.0.0.1|%d,%d\r\nSTOR x\r\n" % (port, port)
            replaced = relay.upwards(command)
            own_port = int(replaced.split(b",")[1].split()[0])
            place = route.own_host.encode() + b"|%d" % own_port
            assert replaced == b"TYPE I\r\nMPRT IP4|TCP|%b,%d\r\nSTOR x\r\n" % (place, own_port)
            again = relay.upwards(b"EPRT |1|127.0.0.1|%d|\r\n" % port)
            assert again == b"EPRT |1|%b|\r\n" % place
            socket.create_connection((route.own_host, own_port)).close()
