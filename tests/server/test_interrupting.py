"""ABOR, STAT and QUIT while data moves: seen at once (RFC 959 section 4.1)."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support import RawClient, raw_session
from xftp.server import Server
from xftp.server.control import ControlConnection
from xftp.transport.partial import PartialFile

from .support import (
    CHUNK,
    WAIT_S,
    codes,
    download,
    has_moved,
    listening,
    moved_bytes,
    multiple,
    names,
    pattern,
    plain,
    records,
    until,
    upload,
    upload_records,
)

LARGE_BYTES = 1 << 28
"""More than the buffers of the sockets hold."""


def _large(path: Path) -> None:
    path.touch()
    with path.open("r+b") as file:
        file.truncate(LARGE_BYTES)


def _plain_abort(client: RawClient) -> None:
    client.send("ABOR")


def _telnet_abort(client: RawClient) -> None:
    """Interrupt Process, then Synch: the data mark as urgent data (RFC 854)."""
    descriptor = os.dup(client.writer.get_extra_info("socket").fileno())
    with socket.socket(fileno=descriptor) as sock:
        sock.send(b"\xff\xf4\xff")
        sock.send(b"\xf2", socket.MSG_OOB)
        sock.send(b"ABOR\r\n")


def _all_urgent_abort(client: RawClient) -> None:
    """What many clients do: IAC IP IAC in one urgent send, then DM and the command."""
    descriptor = os.dup(client.writer.get_extra_info("socket").fileno())
    with socket.socket(fileno=descriptor) as sock:
        sock.send(b"\xff\xf4\xff", socket.MSG_OOB)
        sock.send(b"\xf2ABOR\r\n")


ABORTS = pytest.mark.parametrize("abort", [_plain_abort, _telnet_abort, _all_urgent_abort])
Abort = Callable[[RawClient], None]


@ABORTS
@pytest.mark.parametrize("count", [0, 1, 4])
async def test_abort_of_retr(client: RawClient, root: Path, abort: Abort, count: int) -> None:
    _large(root / "large")
    (root / "file").write_bytes(b"abc")
    connections = await multiple(client, count) if count else [await plain(client)]
    for data in connections:
        data.writer.transport.pause_reading()
    client.send("RETR large")
    assert await codes(client, 1) == [150]
    await has_moved(client, 1)
    abort(client)
    assert await codes(client, 2) == [426, 226]
    for data in connections:
        data.writer.transport.resume_reading()
        with pytest.raises(ConnectionResetError):  # a polite end could be taken for the file's
            await data.read()
    assert (await client.command("NOOP")).code == 200
    assert await download(client, "RETR file") == ([150, 226], b"abc")


@ABORTS
async def test_abort_of_stor(client: RawClient, root: Path, abort: Abort) -> None:
    content = pattern(100_000)
    data = await plain(client)
    client.send("STOR file")
    await data.send(content[:60_000])
    assert await codes(client, 1) == [150]
    await has_moved(client, 60_000)
    abort(client)
    assert await codes(client, 2) == [426, 226]
    assert not (root / "file").exists()
    assert (await client.command("SIZE file")).text == "60000"
    assert await upload(client, "APPE file", content[60_000:]) == [150, 226]
    assert (root / "file").read_bytes() == content


@ABORTS
async def test_abort_of_stor_of_records(client: RawClient, root: Path, abort: Abort) -> None:
    content = pattern(6 * CHUNK)
    framed = records(content)
    first, second = await multiple(client, 2)
    client.send("STOR file")
    await first.send(framed[0] + framed[1])
    await second.send(framed[3] + framed[2][:100])
    assert await codes(client, 1) == [150]
    await has_moved(client, 3 * CHUNK)
    abort(client)
    assert await codes(client, 2) == [426, 226]
    # Record 3 is kept too, but for an ordinary restart only what has no gap counts.
    assert (await client.command("SIZE file")).text == str(2 * CHUNK)
    assert (await client.command(f"REST {2 * CHUNK}")).code == 350
    assert await upload(client, "STOR file", content[2 * CHUNK :]) == [150, 226]
    assert (root / "file").read_bytes() == content
    assert names(root) == ["file"]


@pytest.mark.parametrize("command", ["RETR large", "STOR new", "LIST", "MLSD", "STOU"])
async def test_abort_before_any_connection(client: RawClient, root: Path, command: str) -> None:
    _large(root / "large")
    for way in ("EPSV", "MPSV"):
        assert (await client.command(way)).code == 229
        client.send(command, "ABOR")  # in one packet, so the queue is searched too
        assert await codes(client, 3) == [150, 426, 226]
    assert names(root) == ["large"]


async def test_abort_twice(client: RawClient, root: Path) -> None:
    assert (await client.command("EPSV")).code == 229
    client.send("STOR new", "ABOR", "ABOR", "NOOP")
    assert await codes(client, 5) == [150, 426, 226, 226, 200]


async def test_abort_behind_another_transfer_is_meant_for_that(
    client: RawClient, root: Path
) -> None:
    (root / "file").write_bytes(b"abc")
    async with listening(2) as (ports, arrived):
        first, second = (f"EPRT |1|127.0.0.1|{port}|" for port in ports)
        client.send(first, "RETR file", second, "STOR new", "ABOR")
        assert await codes(client, 7) == [200, 150, 226, 200, 150, 426, 226]
        assert await arrived[0].read() == b"abc"


async def test_abort_of_nothing(client: RawClient, root: Path) -> None:
    assert (await client.command("ABOR")).code == 225
    data = await plain(client)
    assert (await client.command("ABOR")).code == 225
    assert await data.read() == b""
    assert (await client.command("STOR file")).code == 425


class _SlowOpening:
    """Lets PartialFile.open wait until `go_on`."""

    def __init__(self, patched: pytest.MonkeyPatch) -> None:
        self.begun = asyncio.Event()
        self.go_on = threading.Event()
        self._loop = asyncio.get_running_loop()
        self._open = PartialFile.open
        patched.setattr(PartialFile, "open", self._wait)

    def _wait(self, *arguments: Any, **named: Any) -> PartialFile:
        self._loop.call_soon_threadsafe(self.begun.set)
        assert self.go_on.wait(WAIT_S)
        return self._open(*arguments, **named)


@pytest.mark.parametrize("command", ["STOR file", "APPE file"])
async def test_abort_while_the_file_is_opened(
    client: RawClient,
    server: Server,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
) -> None:
    """The file that the aborted command did not get is closed: its lock is gone."""
    (root / "file").write_bytes(b"old")
    (session,) = server.sessions
    with monkeypatch.context() as patched:
        opening = _SlowOpening(patched)
        await plain(client)
        client.send(command)
        await asyncio.wait_for(opening.begun.wait(), 10)
        client.send("ABOR")
        await until(lambda: session.running.aborts == 1)
        opening.go_on.set()
        assert await codes(client, 2) == [426, 226]
    assert names(root) == ["file"]
    assert await upload(client, "STOR file", b"new") == [150, 226]
    assert (root / "file").read_bytes() == b"new"


async def test_status_while_the_file_is_opened_waits(
    client: RawClient, server: Server, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (session,) = server.sessions
    opening = _SlowOpening(monkeypatch)
    data = await plain(client)
    client.send("STOR file")
    await asyncio.wait_for(opening.begun.wait(), 10)
    client.send("STAT")
    await until(lambda: session.control.has_waiting)
    opening.go_on.set()
    assert await codes(client, 2) == [150, 211]
    await data.finish(b"abc")
    assert await codes(client, 1) == [226]


async def test_status_while_data_moves(client: RawClient, root: Path) -> None:
    data = await plain(client)
    client.send("STOR file", "PWD")
    assert await codes(client, 1) == [150]
    assert await moved_bytes(client) == 0
    await data.send(b"x" * 1000)
    await has_moved(client, 1000)
    await data.finish()
    assert await codes(client, 2) == [226, 257]
    assert "Idle" in (await client.command("STAT")).text


async def test_status_does_not_overtake_the_first_reply(client: RawClient, root: Path) -> None:
    (root / "file").write_bytes(b"abc")
    client.send("RETR file", "STAT", "EPSV", "RETR missing", "STAT")
    assert await codes(client, 5) == [425, 211, 229, 550, 211]
    assert (await client.command("EPSV")).code == 229
    client.send("RETR file", "STAT", "ABOR")
    assert await codes(client, 4) == [150, 211, 426, 226]


async def test_quit_lets_the_download_finish(client: RawClient, root: Path) -> None:
    content = pattern(20_000_000)
    (root / "file").write_bytes(content)
    data = await plain(client)
    data.writer.transport.pause_reading()
    client.send("RETR file")
    assert await codes(client, 1) == [150]
    client.send("QUIT")
    assert await moved_bytes(client) < len(content)
    data.writer.transport.resume_reading()
    assert await data.read() == content
    assert await codes(client, 2) == [226, 221]
    with pytest.raises(ConnectionError):
        await client.reply()


@pytest.mark.parametrize("at_once", [True, False])
async def test_quit_and_leave_lets_the_upload_finish(
    client: RawClient, server: Server, root: Path, at_once: bool
) -> None:
    data = await plain(client)
    if at_once:
        client.send("ALLO 6", "STOR file", "QUIT")
    else:
        client.send("ALLO 6", "STOR file")
        assert await codes(client, 2) == [200, 150]
        client.send("QUIT")
    await client.close()
    await data.send(b"abc")
    await data.finish(b"def")
    await until(lambda: server.session_count == 0)
    assert (root / "file").read_bytes() == b"abcdef"


async def test_leaving_without_quit_ends_the_transfer(
    client: RawClient, server: Server, root: Path
) -> None:
    _large(root / "large")
    data = await plain(client)
    data.writer.transport.pause_reading()
    client.send("RETR large")
    assert await codes(client, 1) == [150]
    await client.close()
    data.writer.transport.resume_reading()
    with pytest.raises(ConnectionResetError):
        await data.read()
    await until(lambda: server.session_count == 0)


async def test_killed_client_is_no_success(server: Server, root: Path) -> None:
    """Its kernel closes politely, the data and the control connection, in any order."""
    for framed in (False, True):
        for control_first in (False, True):
            async with raw_session(server) as client:
                assert (await client.command("TYPE I")).code == 200
                data = (await multiple(client, 1))[0] if framed else await plain(client)
                client.send("STOR file")
                assert await codes(client, 1) == [150]
                content = pattern(3 * CHUNK)
                await data.send(b"".join(records(content)) if framed else content)
                await has_moved(client, len(content))
                for end in (client, data) if control_first else (data, client):
                    end.writer.close()
                await until(lambda: server.session_count == 0)
            assert names(root) == ["file.xftp.part"]
            (root / "file.xftp.part").unlink()


@pytest.mark.parametrize(
    ("type_", "announced", "code"),
    [("I", 3, 226), ("I", 2, 426), ("I", None, 426), ("A", 3, 426), ("A", None, 426)],
)
async def test_only_the_exact_size_proves_more_than_a_live_client(
    client: RawClient,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    type_: str,
    announced: int | None,
    code: int,
) -> None:
    """In ASCII line ends change it; and what is less than what came is not the file's."""

    async def is_gone(control: ControlConnection) -> bool:
        return False

    monkeypatch.setattr(ControlConnection, "is_alive", is_gone)
    assert (await client.command(f"TYPE {type_}")).code == 200
    if announced is not None:
        assert (await client.command(f"ALLO {announced}")).code == 200
    assert await upload(client, "STOR file", b"abc") == [150, code]
    assert names(root) == ["file" if code == 226 else "file.xftp.part"]


@pytest.mark.parametrize(("announced", "code"), [(3, 226), (None, 426)])
async def test_records_of_a_client_that_is_gone(
    client: RawClient,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    announced: int | None,
    code: int,
) -> None:
    async def is_gone(control: ControlConnection) -> bool:
        return False

    monkeypatch.setattr(ControlConnection, "is_alive", is_gone)
    said = await upload_records(client, "STOR file", records(b"abc"), size=announced)
    assert said == [150, code]
    assert (root / "file").exists() == (code == 226)


async def test_closed_control_connection_is_noticed(client: RawClient, server: Server) -> None:
    """By the kernel's word, however late we come to read the end."""
    (session,) = server.sessions
    assert await session.control.is_alive()
    with socket.socket(fileno=os.dup(client.writer.get_extra_info("socket").fileno())) as sock:
        sock.shutdown(socket.SHUT_WR)
    assert not await session.control.is_alive()


async def test_abort_does_not_disturb_other_sessions(
    client: RawClient, server: Server, root: Path
) -> None:
    async with raw_session(server) as other:
        assert (await other.command("TYPE I")).code == 200
        data = await plain(other)
        other.send("STOR theirs")
        assert await codes(other, 1) == [150]
        assert (await client.command("EPSV")).code == 229
        client.send("STOR ours", "ABOR")
        assert await codes(client, 3) == [150, 426, 226]
        await data.finish(b"abc")
        assert await codes(other, 1) == [226]
    assert await upload_records(client, "STOR ours", records(b"abc")) == [150, 226]
    assert (root / "theirs").read_bytes() == b"abc"
