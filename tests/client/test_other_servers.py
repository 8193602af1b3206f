"""Servers that know nothing of MULT: pyftpdlib and stock aioftp."""

from __future__ import annotations

import contextlib
import os
import threading
import warnings
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import aioftp
import pytest

import xftp
from xftp.errors import LoginError, ReplyError
from xftp.transport.kept import working_names

from .scripted import names

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # asyncore, on Python 3.11
    from pyftpdlib.authorizers import DummyAuthorizer
    from pyftpdlib.handlers import FTPHandler
    from pyftpdlib.servers import FTPServer

HOST = "127.0.0.1"
DATA = os.urandom(300_001)


@contextlib.contextmanager
def pyftpd(root: Path, host: str) -> Iterator[int]:
    """Run pyftpdlib in a thread; give its port."""
    authorizer = DummyAuthorizer()
    authorizer.add_user("u", "p", str(root), perm="elradfmwMT")

    class Handler(FTPHandler):  # type: ignore[misc]
        auth_failed_timeout = 0

    Handler.authorizer = authorizer
    server = FTPServer((host, 0), Handler)
    stopping = threading.Event()

    def serve() -> None:
        while not stopping.is_set():
            server.serve_forever(timeout=0.05, blocking=False)
        server.close_all()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield server.address[1]
    finally:
        stopping.set()
        thread.join()


@contextlib.asynccontextmanager
async def stock_aioftp(root: Path, host: str) -> AsyncIterator[int]:
    """Run aioftp's own server; give its port."""
    server = aioftp.Server([aioftp.User("u", "p", base_path=root)])
    await server.start(host, 0)
    try:
        yield server.server_port
    finally:
        await server.close()


@pytest.fixture(params=["pyftpdlib", "aioftp"])
async def port(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[int]:
    root = tmp_path / "root"
    root.mkdir()
    if request.param == "pyftpdlib":
        with pyftpd(root, HOST) as number:
            yield number
    else:
        async with stock_aioftp(root, HOST) as number:
            yield number


@pytest.fixture
def root(port: int, tmp_path: Path) -> Path:
    return tmp_path / "root"


def connect(port: int, **options: object) -> contextlib.AbstractAsyncContextManager[xftp.Session]:
    return xftp.connect(
        f"ftp://u:p@{HOST}:{port}/",
        options=xftp.Options(**options),  # type: ignore[arg-type]
    )


async def test_there_and_back_over_one_connection(port: int, root: Path, tmp_path: Path) -> None:
    notices: list[str] = []
    (tmp_path / "a").write_bytes(DATA)
    async with connect(port, connections=8, notice=notices.append) as session:
        report = await session.put(tmp_path / "a", "there", existing="overwrite")
        assert report is not None
        assert not report.framed
        assert (root / "there").read_bytes() == DATA
        report = await session.get("there", tmp_path / "b")
        assert report is not None
        assert report.bytes == len(DATA)
        assert (tmp_path / "b").read_bytes() == DATA
        assert session.connections == 1
    assert notices == []


@pytest.mark.parametrize("size", [0, 1, 8192])
async def test_small_files(port: int, root: Path, tmp_path: Path, size: int) -> None:
    (root / "a").write_bytes(DATA[:size])
    async with connect(port) as session:
        await session.get("a", tmp_path / "b")
        await session.put(tmp_path / "b", "c", existing="overwrite")
    assert (root / "c").read_bytes() == DATA[:size]


async def test_a_download_is_gone_on_from(port: int, root: Path, tmp_path: Path) -> None:
    (root / "a").write_bytes(DATA)
    (tmp_path / working_names("b")[0]).write_bytes(DATA[:100_000])
    async with connect(port) as session:
        await session.get("a", tmp_path / "b", existing="resume")
    assert (tmp_path / "b").read_bytes() == DATA


async def test_directories_and_names(port: int, root: Path) -> None:
    async with connect(port) as session:
        await session.make_directory("new dir")
        await session.cwd("new dir")
        assert (await session.pwd()).endswith("/new dir")
        await session.cdup()
        (root / "ä b").write_bytes(b"123")
        entries = {entry.name: entry for entry in await session.list()}
        assert set(entries) == {"new dir", "ä b"}
        assert entries["new dir"].kind == "dir"
        assert (entries["ä b"].kind, entries["ä b"].size) == ("file", 3)
        assert "new dir" in await session.list_text()
        await session.rename("ä b", "c")
        await session.remove("c")
        await session.remove_directory("new dir")
        assert names(root) == []


async def test_refusals_leave_the_session_usable(port: int, root: Path, tmp_path: Path) -> None:
    (root / "dir").mkdir()
    async with connect(port) as session:
        for name in ("missing", "dir"):
            with pytest.raises(ReplyError):
                await session.get(name, tmp_path / "a")
        assert [entry.name for entry in await session.list()] == ["dir"]
    assert names(tmp_path) == ["root"]


async def test_a_wrong_password(port: int) -> None:
    with pytest.raises(LoginError):
        async with xftp.connect(f"ftp://u:x@{HOST}:{port}/"):
            pass


async def test_streams(port: int, root: Path) -> None:
    pieces = iter([DATA[:1000], None, DATA[1000:], b""])
    text = bytearray()
    async with connect(port) as session:
        await session.put_stream(lambda: next(pieces), "a")
        assert (root / "a").read_bytes() == DATA
        await session.get_stream("a", text.extend)
    assert text == DATA


async def test_pyftpdlib_takes_active_connections_times_and_restarts(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "a").write_bytes(DATA)
    os.utime(tmp_path / "a", (1577836800, 1577836800))
    with pyftpd(root, HOST) as port:
        async with connect(port, passive=False) as session:
            (root / "b").write_bytes(DATA[:1000])
            await session.put(tmp_path / "a", "b", existing="resume")
            assert (root / "b").read_bytes() == DATA
            assert (root / "b").stat().st_mtime == 1577836800
            await session.get("b", tmp_path / "c")
            assert (tmp_path / "c").read_bytes() == DATA
            assert (tmp_path / "c").stat().st_mtime == 1577836800
            assert await session.size("b") == len(DATA)


@pytest.mark.parametrize("passive", [True, False])
async def test_ipv6(tmp_path: Path, passive: bool) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "a").write_bytes(DATA)
    try:
        server = pyftpd(root, "::1")
        port = server.__enter__()
    except OSError:
        pytest.skip("this machine has no IPv6")
    try:
        async with xftp.connect(
            f"ftp://u:p@[::1]:{port}/", options=xftp.Options(passive=passive)
        ) as session:
            await session.get("a", tmp_path / "b")
    finally:
        server.__exit__(None, None, None)
    assert (tmp_path / "b").read_bytes() == DATA


async def test_text(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "a").write_bytes(b"one\ntwo\n")
    with pyftpd(root, HOST) as port:
        async with connect(port) as session:
            await session.set_type("A")
            await session.get("a", tmp_path / "b")
            await session.put(tmp_path / "b", "c")
    assert (tmp_path / "b").read_bytes() == b"one\ntwo\n"
    assert (root / "c").read_bytes() == b"one\ntwo\n"
