"""Transfers whose connections break, fall silent, or all go away for a while."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from xftp.errors import TransferAborted
from xftp.protocol.repeating import Endurance
from xftp.transport.active import ActiveChannel
from xftp.transport.channels import DataChannel
from xftp.transport.files import SourceFile
from xftp.transport.ratelimit import RateLimit
from xftp.transport.receiver import RecordReceiver
from xftp.transport.sender import RecordSender
from xftp.transport.sockets import send_small_at_once, set_least_readable
from xftp.transport.tls import DataTls

from .proxy import Pair, Proxy, proxied
from .support import content, dial, listening, partial, record, send_all

SIZE = 3_000_003
DATA = content(SIZE)
RATE = 6e6
"""Bytes per second: slow enough for something to happen meanwhile."""

IMPATIENT = Endurance(
    silent_s=0.3, silent_rtos=0, idle_s=0.5, idle_rtts=0, first_redial_s=0.02, last_redial_s=0.2
)


@dataclass
class Outcome:
    """What is left of a transfer to look at."""

    sender: RecordSender
    receiver: RecordReceiver
    proxy: Proxy


Fault = Callable[[Proxy, Pair], None]
"""Called each time something went through a pair."""


async def transfer(
    path: Path,
    count: int,
    fault: Fault,
    *,
    sender_dials: bool,
    server_sends: bool,
    tls: tuple[DataTls | None, DataTls | None] = (None, None),
) -> Outcome:
    """Move DATA over `count` connections through a proxy that `fault` tells what to do.

    The server is the side that says when all is there. tls: of the server and of the client.
    """
    listens, dials = tls if sender_dials != server_sends else tls[::-1]
    (path / "source").write_bytes(DATA)
    source, target = SourceFile.open(str(path / "source")), partial(path / "target")
    passive = listening(count, count, listens)
    async with proxied(passive.endpoint, lambda pair: fault(proxy, pair)) as proxy:
        active = ActiveChannel([proxy.endpoint] * count, tls=dials)
        channels: list[DataChannel] = [passive, active]
        for channel in channels:
            channel.replaces, channel.endurance = True, IMPATIENT
        sender = RecordSender(active if sender_dials else passive, source, limit=RateLimit(RATE))
        receiver = RecordReceiver(passive if sender_dials else active, target, SIZE)
        server, client = (sender, receiver) if server_sends else (receiver, sender)
        client.confirmation_timeout_s = 60.0
        try:
            async with asyncio.timeout(60), asyncio.TaskGroup() as group:
                group.create_task(client.run())
                await server.run()
                client.confirm()
        finally:
            for channel in channels:
                channel.close()
            source.close()
    assert receiver.size == SIZE
    target.commit(SIZE)
    assert (path / "target").read_bytes() == DATA
    assert sender.file_bytes == receiver.file_bytes == SIZE
    return Outcome(sender, receiver, proxy)


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


async def nothing_is_left(before: int) -> None:
    """Wait until no task but this one, and no more descriptors than `before`, are there."""
    async with asyncio.timeout(10):
        while len(asyncio.all_tasks()) > 1 or descriptors() > before:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


COUNTS = pytest.mark.parametrize("count", [1, 4, 8])
ROLES = pytest.mark.parametrize(
    ("sender_dials", "server_sends"),
    [(False, True), (True, False), (True, True), (False, False)],
    ids=["passive-download", "passive-upload", "active-download", "active-upload"],
)


def reset_first(count: int) -> Fault:
    """Reset the first of `count` connections when it has moved a quarter of its share."""

    def fault(_: Proxy, pair: Pair) -> None:
        if pair.number == 0 and pair.moved > SIZE / count / 4:
            pair.reset()

    return fault


@COUNTS
@ROLES
async def test_one_connection_is_reset(
    tmp_path: Path, count: int, sender_dials: bool, server_sends: bool
) -> None:
    before = descriptors()
    ended = await transfer(
        tmp_path, count, reset_first(count), sender_dials=sender_dials, server_sends=server_sends
    )
    assert ended.sender.lost_connections >= 1
    assert ended.sender.report().lost_connections == ended.sender.lost_connections
    assert len(ended.proxy.pairs) > count, "it is replaced"
    await nothing_is_left(before)


@COUNTS
@ROLES
async def test_one_connection_falls_silent(
    tmp_path: Path, count: int, sender_dials: bool, server_sends: bool
) -> None:
    def fault(proxy: Proxy, pair: Pair) -> None:
        if pair.moved > 100_000 and all(each.flowing.is_set() for each in proxy.pairs):
            pair.freeze()

    before = descriptors()
    ended = await transfer(
        tmp_path, count, fault, sender_dials=sender_dials, server_sends=server_sends
    )
    assert ended.sender.report().repeated_bytes > 0
    await nothing_is_left(before)


@COUNTS
@ROLES
async def test_all_are_gone_for_a_while(
    tmp_path: Path, count: int, sender_dials: bool, server_sends: bool
) -> None:
    """Every connection falls silent, new ones too, and the old ones never come back."""
    outages = 0

    def fault(proxy: Proxy, _: Pair) -> None:
        nonlocal outages
        if outages == 0 and sum(pair.moved for pair in proxy.pairs) > SIZE / 3:
            outages += 1
            proxy.is_down = True
            for pair in proxy.pairs:
                pair.freeze()
            asyncio.get_running_loop().call_later(1.5, back, proxy)

    def back(proxy: Proxy) -> None:
        proxy.is_down = False
        for pair in proxy.pairs[count:]:
            pair.thaw()

    before = descriptors()
    ended = await transfer(
        tmp_path, count, fault, sender_dials=sender_dials, server_sends=server_sends
    )
    assert outages == 1
    assert len(ended.proxy.pairs) > count
    await nothing_is_left(before)


@ROLES
async def test_every_connection_is_reset_now_and_then(
    tmp_path: Path, sender_dials: bool, server_sends: bool
) -> None:
    def fault(_: Proxy, pair: Pair) -> None:
        if pair.moved > 400_000:
            pair.reset()

    ended = await transfer(tmp_path, 4, fault, sender_dials=sender_dials, server_sends=server_sends)
    assert ended.sender.lost_connections >= 4


async def test_the_end_of_a_file_waits_for_no_acknowledgment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once: list[int] = []

    def noted(sock: socket.socket) -> None:
        send_small_at_once(sock)
        at_once.append(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))

    monkeypatch.setattr("xftp.transport.sender.send_small_at_once", noted)
    await transfer(tmp_path, 3, lambda proxy, pair: None, sender_dials=False, server_sends=True)
    assert at_once and all(at_once)


@COUNTS
async def test_a_receiver_is_woken_seldom_but_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    marks: dict[int, list[int]] = {}

    def noted(sock: socket.socket, least_bytes: int) -> None:
        marks.setdefault(sock.fileno(), []).append(least_bytes)
        set_least_readable(sock, least_bytes)

    monkeypatch.setattr("xftp.transport.gathering.set_least_readable", noted)
    for bound in ("LEAST_GATHER_S", "MOST_GATHER_S"):
        monkeypatch.setattr(f"xftp.transport.gathering.{bound}", 0.1)
    monkeypatch.setattr("xftp.transport.receiver.MOST_GATHERED_BYTES", SIZE // count // 8)
    ended = await transfer(tmp_path, count, lambda *_: None, sender_dials=False, server_sends=True)
    assert marks and all(each[0] > 1 == each[-1] for each in marks.values())
    assert ended.sender.report().repeated_bytes == 0


async def test_healthy_connections_repeat_nothing(tmp_path: Path) -> None:
    ended = await transfer(tmp_path, 4, lambda *_: None, sender_dials=False, server_sends=True)
    assert ended.sender.report().repeated_bytes == 0
    assert ended.sender.report().lost_connections == 0
    assert ended.receiver.report().repeated_bytes == 0
    assert len(ended.proxy.pairs) == 4


async def test_a_straggler_is_not_waited_for(tmp_path: Path) -> None:
    """One connection falls silent at the very end: its records go over another."""
    frozen: list[Pair] = []

    def fault(proxy: Proxy, pair: Pair) -> None:
        if not frozen and sum(each.moved for each in proxy.pairs) > 0.9 * SIZE:
            frozen.append(pair)
            pair.freeze()

    ended = await transfer(tmp_path, 4, fault, sender_dials=False, server_sends=True)
    assert frozen
    assert 0 < ended.sender.report().repeated_bytes < SIZE / 2
    assert ended.sender.lost_connections <= 1


async def test_a_new_connection_takes_the_place_of_a_dead_one_and_not_of_a_resting_one(
    tmp_path: Path,
) -> None:
    """The resting one is silent for longer, but nothing is expected on it."""
    channel = listening(2, 2)
    channel.replaces = True
    target = partial(tmp_path / "file")
    receiver = RecordReceiver(channel, target, SIZE)
    running = asyncio.create_task(receiver.run())
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(20):
        resting = await dial(channel)
        await loop.sock_sendall(resting, record(0, DATA))
        while len(receiver.held) < 1:  # noqa: ASYNC110 - the receiver has no event for it
            await asyncio.sleep(0.001)
        dead = await dial(channel)
        await loop.sock_sendall(dead, record(1, DATA) + record(2, DATA)[:100])
        count = -(-SIZE // 8192)
        rest = b"".join(record(number, DATA) for number in range(2, count))
        while not running.done():
            another = await dial(channel)  # turned away as long as the dead one may be alive
            with contextlib.suppress(ConnectionError):
                await loop.sock_sendall(another, rest)
                await loop.sock_recv(another, 4096)
            if not all(each.is_open for each in channel.connections[:2]):
                break
            another.close()
            await asyncio.sleep(0.05)
        assert channel.connections[0].is_open
        assert not channel.connections[1].is_open
        receiver.confirm()
        await running
    assert receiver.lost_connections == 1
    assert receiver.held_bytes() == [(0, SIZE)]
    for sock in (resting, dead, another):
        sock.close()
    channel.close()


async def test_without_the_agreement_a_reset_is_the_end(tmp_path: Path) -> None:
    channel = listening(2, 2)
    target = partial(tmp_path / "file")
    running = asyncio.create_task(RecordReceiver(channel, target, SIZE).run())
    sock = await dial(channel)
    await send_all(sock, record(0, DATA) + b"\0\0")
    with pytest.raises(TransferAborted, match="inside a sequence number"):
        await asyncio.wait_for(running, 10)


async def test_nobody_comes_back(tmp_path: Path) -> None:
    """Then the stall time-out ends it, and what came is known."""
    channel = listening(2, 2)
    channel.replaces = True
    target = partial(tmp_path / "file")
    receiver = RecordReceiver(channel, target, SIZE)
    receiver.stall_timeout_s = 0.3
    running = asyncio.create_task(receiver.run())
    await send_all(await dial(channel), record(0, DATA) + record(1, DATA)[:100])
    with pytest.raises(TransferAborted, match=r"no data moved for 0\.3 s, after .* closed it"):
        await asyncio.wait_for(running, 10)
    assert receiver.held_bytes() == [(0, 8192)]


async def test_breaking_again_and_again_is_the_end(tmp_path: Path) -> None:
    (tmp_path / "source").write_bytes(DATA)
    source = SourceFile.open(str(tmp_path / "source"))
    passive = listening(2, 2)

    async with proxied(passive.endpoint, Pair.reset) as proxy:
        active = ActiveChannel([proxy.endpoint] * 2)
        for channel in (passive, active):
            channel.replaces = True
            channel.endurance = Endurance(
                first_redial_s=0.001, last_redial_s=0.001, losses_per_gain=4
            )
        target = partial(tmp_path / "target")
        receiver = RecordReceiver(passive, target, SIZE)
        receiving = asyncio.create_task(receiver.run())
        with pytest.raises(TransferAborted, match="again and again"):
            await asyncio.wait_for(RecordSender(active, source).run(), 20)
        receiving.cancel()
        await asyncio.gather(receiving, return_exceptions=True)
    source.close()
    assert len(proxy.pairs) < 40
