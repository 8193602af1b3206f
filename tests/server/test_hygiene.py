"""Nothing stays behind: descriptors, tasks, listeners."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.support import RawClient, raw_session, running_server
from xftp.server import Server

from .support import (
    CHUNK,
    codes,
    dealt,
    download,
    download_records,
    has_moved,
    listening,
    multiple,
    opened,
    pattern,
    plain,
    records,
    until,
    upload,
    upload_records,
)


def _descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


async def _close_ours() -> None:
    while opened:
        await opened.pop().close()


async def _good(client: RawClient) -> None:
    content = pattern(100 * CHUNK + 3)
    for active in (False, True):
        said = await upload_records(client, "STOR file", dealt(content, 4), active=active)
        assert said == [150, 226]
        assert (await download_records(client, "RETR file", 4, active=active))[0] == [150, 226]
    assert await upload(client, "STOR file", content) == [150, 226]
    assert (await download(client, "RETR file"))[0] == [150, 226]
    assert (await download(client, "MLSD"))[0] == [150, 226]


async def _aborted(client: RawClient) -> None:
    for command in ("STOR new", "APPE file", "RETR large", "LIST"):
        for way in ("EPSV", "MPSV"):
            assert (await client.command(way)).code == 229
            client.send(command, "ABOR")
            assert await codes(client, 3) == [150, 426, 226]
        for count in (0, 3):
            connections = await multiple(client, count) if count else [await plain(client)]
            for data in connections:
                data.writer.transport.pause_reading()
            if command != "LIST":  # it would be over at once
                client.send(command)
                assert await codes(client, 1) == [150]
                client.send("ABOR")
                assert await codes(client, 2) == [426, 226]


async def _failed(client: RawClient) -> None:
    content = pattern(5 * CHUNK)
    assert (await upload_records(client, "STOR x", records(content)[1:]))[-1] == 426
    assert await upload(client, "STOR missing/x", b"") == [550]
    assert (await download(client, "RETR missing"))[0] == [550]
    assert (await download(client, "MLSD file"))[0] == [501]
    assert (await client.command("TYPE A")).code == 200
    await multiple(client, 3)
    assert (await client.command("RETR file")).code == 504
    assert (await client.command("TYPE I")).code == 200
    async with listening() as ((port,), _):
        pass
    client.send(f"MPRT IP4|TCP|127.0.0.1|{port},{port}", "RETR file")
    assert await codes(client, 3) == [200, 150, 425]


async def _listened(client: RawClient) -> None:
    for _ in range(300):
        assert (await client.command("MPSV")).code == 229
    await multiple(client, 8)  # and connections that no transfer takes over
    for command in ("EPSV", "PASV", "EPRT |1|127.0.0.1|2345|", "MPRT IP4|TCP|127.0.0.1|2345"):
        assert (await client.command(command)).code in (200, 227, 229)


async def _lost(client: RawClient) -> None:
    data = await plain(client)
    client.send("STOR lost")
    assert await codes(client, 1) == [150]
    await data.send(b"abc")
    await has_moved(client, 3)
    client.writer.transport.abort()


Work = Callable[[RawClient], Awaitable[None]]


@pytest.mark.parametrize("work", [_good, _aborted, _failed, _listened, _lost])
async def test_nothing_stays(server: Server, root: Path, work: Work) -> None:
    (root / "file").write_bytes(pattern(100_000))
    (root / "large").touch()
    os.truncate(root / "large", 1 << 28)

    async def session() -> None:
        async with raw_session(server) as client:
            assert (await client.command("TYPE I")).code == 200
            await work(client)
        await _close_ours()
        await until(lambda: server.session_count == 0)

    await session()  # what is made once, such as threads, is made now
    descriptors, tasks = _descriptors(), len(asyncio.all_tasks())
    for _ in range(3):
        await session()
    await until(lambda: _descriptors() <= descriptors and len(asyncio.all_tasks()) <= tasks)


async def test_session_with_open_listener_is_small(client: RawClient) -> None:
    before = _descriptors()
    for _ in range(300):
        assert (await client.command("MPSV")).code == 229
    assert _descriptors() == before + 1


async def test_many_sessions(root: Path) -> None:
    async def run(sessions: int) -> None:
        async with running_server(root) as server:
            for _ in range(sessions):
                async with raw_session(server) as client:
                    assert (await client.command("QUIT")).code == 221
            await until(lambda: server.session_count == 0)

    await run(1)  # what the loop itself opens is open now
    before = _descriptors()
    await run(50)
    await until(lambda: _descriptors() <= before)
