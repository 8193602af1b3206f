"""On long paths our client dials the standing port while its commands are on their way."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import xftp
from tests.support import running_server
from xftp.client import connected, control, dialling, opened, several
from xftp.client.memory import MemoryFile
from xftp.client.series import Pair
from xftp.client.session import open_session
from xftp.errors import ConnectError, ReplyError, TuningRefused
from xftp.protocol.options import MultOptions
from xftp.protocol.standing import format_call
from xftp.server import Server
from xftp.transport.active import ActiveChannel

from .scripted import (
    HOST,
    Conversation,
    Handler,
    mpsv,
    names,
    records,
    scripted,
    sends_records,
)
from .tuning_fakes import FakeTuner

DATA = os.urandom(1_000_001)


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Take every path for a long one; gives what the connections of each channel begin with."""
    calls: list[bytes] = []

    class Noted(ActiveChannel):
        def __init__(self, *arguments: object, **named: object) -> None:
            super().__init__(*arguments, **named)  # type: ignore[arg-type]
            calls.append(self._call)

    monkeypatch.setattr(several, "LONG_RTT_S", 0.0)
    monkeypatch.setattr(opened, "ActiveChannel", Noted)
    return calls


def url_of(server: Server) -> str:
    return f"ftp://127.0.0.1:{server.server_port}/"


async def fetch(
    url: str, target: Path, connections: int = 4, **options: object
) -> tuple[list[str], xftp.TransferReport | None]:
    """Fetch `a`; give the verbs that were sent, and the report."""
    trace: list[str] = []
    chosen = xftp.Options(connections=connections, trace=trace.append, **options)  # type: ignore[arg-type]
    session = await open_session(url, options=chosen, defer=True)
    try:
        report = await session.get("a", target)
    finally:
        await session.quit()
    return [line.split()[1] for line in trace if line.startswith("> ")], report


@pytest.mark.parametrize("count", [2, 8])
@pytest.mark.parametrize("size", [0, 1, 8192, len(DATA)])
async def test_a_download(
    server: Server, root: Path, tmp_path: Path, called: list[bytes], count: int, size: int
) -> None:
    (root / "a").write_bytes(DATA[:size])
    verbs, report = await fetch(url_of(server), tmp_path / "a", count)
    assert (tmp_path / "a").read_bytes() == DATA[:size]
    assert [bool(each) for each in called] == [True]
    assert verbs.index("RETR") == verbs.index("MPSV") + 1
    assert report is not None
    assert 1 <= len(report.connections) <= count


async def test_an_upload(server: Server, root: Path, tmp_path: Path, called: list[bytes]) -> None:
    (tmp_path / "a").write_bytes(DATA)
    async with xftp.connect(url_of(server), options=xftp.Options(connections=4)) as session:
        await session.put(tmp_path / "a", "up")
    assert (root / "up").read_bytes() == DATA
    assert [bool(each) for each in called] == [True]


async def test_each_transfer_has_a_token_of_its_own(
    server: Server, root: Path, tmp_path: Path, called: list[bytes]
) -> None:
    (root / "a").write_bytes(DATA)
    async with xftp.connect(url_of(server), options=xftp.Options(connections=4)) as session:
        for number in range(3):
            await session.get("a", tmp_path / str(number))
    assert {(tmp_path / str(number)).read_bytes() for number in range(3)} == {DATA}
    assert len(set(called)) == 3


async def test_many_files_at_once(
    server: Server, root: Path, here: Path, called: list[bytes]
) -> None:
    contents = {str(number): DATA[: number * 1000] for number in range(20)}
    for name, content in contents.items():
        (root / name).write_bytes(content)
    pairs = [Pair(here / name, name) for name in contents]
    async with xftp.connect(url_of(server), options=xftp.Options(connections=4)) as session:
        result = await session.move_series("download", pairs)
    assert not result.failures
    assert {name: (here / name).read_bytes() for name in names(here)} == contents
    assert [bool(each) for each in called] == [True]


async def test_a_short_path_is_not_worth_it(server: Server, root: Path, tmp_path: Path) -> None:
    (root / "a").write_bytes(DATA)
    verbs, _ = await fetch(url_of(server), tmp_path / "a")
    assert verbs.index("RETR") == verbs.index("MPSV") + 1
    assert (tmp_path / "a").read_bytes() == DATA


async def test_the_server_that_dials_is_not_called(
    server: Server, root: Path, tmp_path: Path, called: list[bytes]
) -> None:
    (root / "a").write_bytes(DATA)
    verbs, _ = await fetch(url_of(server), tmp_path / "a", passive=False)
    assert "MPRT" in verbs and "MPSV" not in verbs
    assert not called


async def test_a_missing_file_is_told_as_ever(
    server: Server, root: Path, tmp_path: Path, called: list[bytes]
) -> None:
    (root / "b").write_bytes(DATA)
    async with xftp.connect(url_of(server), options=xftp.Options(connections=4)) as session:
        with pytest.raises(ReplyError) as caught:
            await session.get("a", tmp_path / "a")
        assert caught.value.code == 550
        await session.get("b", tmp_path / "b")
    assert not (tmp_path / "a").exists()
    assert (tmp_path / "b").read_bytes() == DATA
    assert called


async def test_who_asks_for_a_window_asks_first(
    root: Path, tmp_path: Path, called: list[bytes]
) -> None:
    """A route that grants it has to be there before the first SYN."""

    def window(*_: object) -> tuple[None, MultOptions]:
        return None, MultOptions(initial_window_segments=20)

    (root / "a").write_bytes(DATA)
    async with running_server(root, tuner=FakeTuner()) as server:
        await fetch(url_of(server), tmp_path / "a", tuning=window)
    assert (tmp_path / "a").read_bytes() == DATA
    assert [bool(each) for each in called] == [False]


async def test_settings_that_are_not_granted_end_it_before_anything_moves(
    server: Server, root: Path, tmp_path: Path, called: list[bytes]
) -> None:
    def impossible(*_: object) -> tuple[None, MultOptions]:
        return None, MultOptions(congestion="nonesuch")

    (root / "a").write_bytes(DATA)
    with pytest.raises(TuningRefused):
        await fetch(url_of(server), tmp_path / "a", tuning=impossible, strict_tuning=True)
    assert not (tmp_path / "a").exists()


async def test_a_server_that_takes_fewer(root: Path, tmp_path: Path, called: list[bytes]) -> None:
    """What was dialled ahead was one too many: it is begun anew with as many as there may be."""
    (root / "a").write_bytes(DATA)
    async with running_server(root, connection_limit=2) as server:
        verbs, report = await fetch(url_of(server), tmp_path / "a", 4)
    assert (tmp_path / "a").read_bytes() == DATA
    assert [bool(each) for each in called] == [True, False]
    assert verbs.count("MPSV") == verbs.count("RETR") == 2
    assert report is not None
    assert len(report.connections) <= 2


@pytest.mark.parametrize("wanted", [9, 10**20])
async def test_more_than_usual_are_not_dialled_ahead(
    server: Server, root: Path, tmp_path: Path, called: list[bytes], wanted: int
) -> None:
    """How many a server takes is not known before it has said so."""
    (root / "a").write_bytes(DATA)
    _, report = await fetch(url_of(server), tmp_path / "a", wanted, connection_limit=wanted)
    assert (tmp_path / "a").read_bytes() == DATA
    assert [bool(each) for each in called] == [False]
    assert report is not None
    assert len(report.connections) <= 8


async def test_a_port_that_was_taken_for_it_by_mistake(
    root: Path, tmp_path: Path, called: list[bytes]
) -> None:
    """As with --assume-xftpd, where the operator has chosen another one."""
    (root / "a").write_bytes(DATA)
    async with running_server(root, standing_port=None) as server:
        await fetch(url_of(server), tmp_path / "a", assume_xftpd=True)
    assert (tmp_path / "a").read_bytes() == DATA
    assert [bool(each) for each in called] == [True, False]


async def fetch_twice(server: Server, root: Path, folder: Path) -> None:
    """Fetch `a` as a stranger, and as one who remembers."""
    (root / "a").write_bytes(DATA)
    memory = MemoryFile(folder / "memory")
    for number in range(2):
        await fetch(url_of(server), folder / str(number), memory=memory)
        assert (folder / str(number)).read_bytes() == DATA


async def test_it_is_remembered(
    server: Server, root: Path, tmp_path: Path, called: list[bytes]
) -> None:
    await fetch_twice(server, root, tmp_path)
    assert [bool(each) for each in called] == [True, True]


async def test_what_is_remembered_is_dialled_before_the_server_has_answered(
    server: Server, root: Path, tmp_path: Path, called: list[bytes], slow: list[bool]
) -> None:
    await fetch_twice(server, root, tmp_path)
    assert [bool(each) for each in called] == [True, True]
    assert slow == [True, False]


async def test_a_path_that_has_become_longer_gets_other_connections(
    server: Server, root: Path, tmp_path: Path, called: list[bytes], slow: list[bool]
) -> None:
    """Their buffers were made for the shorter one."""
    (root / "a").write_bytes(DATA)
    memory = MemoryFile(tmp_path / "memory")
    await fetch(url_of(server), tmp_path / "before", memory=memory)
    place = ("127.0.0.1", server.server_port)
    known, path = memory.server(*place), memory.path(*place, "download")
    assert known is not None
    memory.note_server(*place, known._replace(rtt_s=1e-6))
    if path is not None:
        memory.note_path(*place, "download", path._replace(rtt_s=1e-6))
    verbs, _ = await fetch(url_of(server), tmp_path / "after", memory=memory)
    assert (tmp_path / "after").read_bytes() == DATA
    assert verbs.count("MPSV") == 2
    assert len(set(called)) == 3


@asynccontextmanager
async def remembered_server(root: Path, path: Path) -> AsyncIterator[tuple[Server, MemoryFile]]:
    """Run a server that has `a`, of which a session was had; give what is remembered of it."""
    (root / "a").write_bytes(DATA)
    memory = MemoryFile(path / "memory")
    async with running_server(root) as server:
        await fetch(url_of(server), path / "before", memory=memory)
        yield server, memory


async def test_a_server_that_is_remembered_and_gone(
    root: Path, tmp_path: Path, called: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connected, "LONG_RTT_S", 0.0)
    async with remembered_server(root, tmp_path) as (server, memory):
        url = url_of(server)
    with pytest.raises(ConnectError, match="Connection refused"):
        await fetch(url, tmp_path / "after", memory=memory)
    assert not (tmp_path / "after").exists()


async def test_a_server_that_is_remembered_and_back_again(
    root: Path, tmp_path: Path, called: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing has been sent: what is not tried again otherwise may be then."""
    monkeypatch.setattr(connected, "LONG_RTT_S", 0.0)
    async with remembered_server(root, tmp_path) as (server, memory):
        real, refusals = dialling.dial, 0

        async def dial(*arguments: Any) -> socket.socket:
            nonlocal refusals
            refusals += 1
            if refusals < 3:
                raise ConnectError("Connection refused")
            return await real(*arguments)

        monkeypatch.setattr(control, "dial", dial)
        chosen = xftp.Options(connections=4, memory=memory, retries=2, retry_wait_s=0)
        session = await open_session(url_of(server), options=chosen, defer=True)
        assert [each.name for each in await session.list()] == ["a"]
        await session.quit()


async def test_a_connection_that_failed_is_noted(
    root: Path, tmp_path: Path, called: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that who has more to ask of the server need not try it for each file."""
    monkeypatch.setattr(connected, "LONG_RTT_S", 0.0)
    async with remembered_server(root, tmp_path) as (server, memory):
        url = url_of(server)

        async def dial(*arguments: Any) -> socket.socket:
            arguments[-1].set_result(("127.0.0.1", "127.0.0.1"))
            await is_open.wait()
            raise ConnectError("no answer")

        is_open = asyncio.Event()

        monkeypatch.setattr(control, "dial", dial)
        session = await open_session(
            url, options=xftp.Options(connections=4, memory=memory), defer=True
        )
        is_open.set()
        with pytest.raises(ConnectError, match="no answer"):
            await session.get("a", tmp_path / "after")
        assert session.connect_error is not None
        await session.wait_closed()


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch, called: list[bytes]) -> list[bool]:
    """Let a control connection that need not be waited for take until something is dialled.

    Gives of each whether it was waited for.
    """
    dialled, waited_for = asyncio.Event(), []

    def noted(token: str) -> bytes:
        dialled.set()
        return format_call(token)

    async def dial(*arguments: Any) -> socket.socket:
        dialled.clear()
        sock = await dialling.dial(*arguments)
        waited_for.append(arguments[-1] is None)
        if not waited_for[-1]:
            await dialled.wait()
        return sock

    monkeypatch.setattr(connected, "LONG_RTT_S", 0.0)
    monkeypatch.setattr(several, "format_call", noted)
    monkeypatch.setattr(control, "dial", dial)
    return waited_for


@pytest.mark.parametrize(
    ("greeting", "first"),
    [
        ("220 XFTP server ready.", None),
        ("220 XFTP server ready. Data port 1025.", None),
        ("220 XFTP server ready. Data port 1025.", "501 MPSV takes no argument."),
    ],
    ids=["has none", "names another", "does not know it"],
)
async def test_servers_without_it(
    tmp_path: Path, called: list[bytes], greeting: str, first: str | None
) -> None:
    content = DATA[:20_000]
    listens = mpsv(2)

    async def passive(talk: Conversation, argument: str) -> None:
        talk.values["called"] = bool(argument)
        if argument and first is not None:
            talk.say(first)
        else:
            await listens(talk, argument)

    async def sends(talk: Conversation, argument: str) -> None:
        if talk.values["called"]:
            talk.say("425 no data connection")
        else:
            await sends_records(records(content, [0, 1]), records(content, [2]))(talk, argument)

    script: dict[str, Handler] = {
        "USER": "230 in",
        "PASS": "230 in",
        "TYPE": "200 ok",
        "FEAT": "211-\r\n MULT Connections;\r\n SIZE\r\n MDTM\r\n211 end",
        "MULT": "200 2 data connections available.",
        "OPTS": "200 MULT Connections=2;",
        "MPSV": passive,
        "SIZE": f"213 {len(content)}",
        "MDTM": "213 20200101000000",
        "RETR": sends,
        "ABOR": "226 nothing to abort",
    }
    async with scripted(script, greeting=greeting) as server:
        await fetch(f"ftp://{HOST}:{server.port}/", tmp_path / "a", 2, verify="never")
    assert (tmp_path / "a").read_bytes() == content
    assert not called[-1]
