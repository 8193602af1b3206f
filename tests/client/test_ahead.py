"""The connection that is begun before the program is loaded."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator

import pytest

from xftp.client import ahead
from xftp.client.dialling import Asked, dial
from xftp.errors import ConnectError

HOST = "127.0.0.1"


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server((HOST, 0)) as sock:
        sock.settimeout(5.0)
        yield sock


@pytest.fixture(autouse=True)
def nothing_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "_begun", None)


def port_of(sock: socket.socket) -> int:
    port: int = sock.getsockname()[1]
    return port


def is_quiet(listener: socket.socket) -> bool:
    """Tell whether nobody else has connected."""
    listener.settimeout(0.1)
    try:
        listener.accept()[0].close()
    except TimeoutError:
        return True
    return False


@pytest.mark.parametrize("host", [HOST, "localhost"])
async def test_what_was_begun_is_taken(listener: socket.socket, host: str) -> None:
    port = port_of(listener)
    ahead.begin(["get", "-4", "-n", "8", f"ftp://me:secret@{host}:{port}/file"])
    accepted, _ = await asyncio.to_thread(listener.accept)
    with accepted, await dial(host, port, "ipv4", 5.0) as sock:
        assert sock.getsockname() == accepted.getpeername()
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert sock.gettimeout() == 0.0
        assert is_quiet(listener)
        with await dial(host, port, "ipv4", 5.0) as second:  # it is there once only
            assert second.getsockname() != sock.getsockname()


async def test_a_path_may_be_shorter_than_the_start(listener: socket.socket) -> None:
    """What is connected already is no error where it is asked who will answer."""
    port = port_of(listener)
    ahead.begin(["get", f"ftp://{HOST}:{port}/file"])
    accepted, _ = await asyncio.to_thread(listener.accept)
    asked: Asked = asyncio.get_running_loop().create_future()
    with accepted, await dial(HOST, port, "any", 5.0, asked) as sock:
        assert sock.getsockname() == accepted.getpeername()
        assert asked.result() == (HOST, HOST)
        assert is_quiet(listener)


async def test_who_was_refused_already_is_not_asked_again() -> None:
    with socket.create_server((HOST, 0)) as sock:
        port = port_of(sock)
    ahead.begin(["get", f"ftp://{HOST}:{port}/file"])
    asked: Asked = asyncio.get_running_loop().create_future()
    with pytest.raises(ConnectError, match="refused"):
        await dial(HOST, port, "any", 5.0, asked)
    assert not asked.done()


async def test_another_place_gets_a_connection_of_its_own(listener: socket.socket) -> None:
    with socket.create_server((HOST, 0)) as other:
        ahead.begin(["get", f"ftp://{HOST}:{port_of(other)}/file"])
        with await dial(HOST, port_of(listener), "any", 5.0) as sock:
            assert sock.getpeername() == listener.getsockname()
        other.settimeout(5.0)
        with other.accept()[0] as unused:
            unused.settimeout(5.0)
            assert unused.recv(1) == b""


async def test_who_is_refused_is_told(listener: socket.socket) -> None:
    port = port_of(listener)
    listener.close()
    ahead.begin(["get", f"ftp://{HOST}:{port}/file"])
    with pytest.raises(ConnectError, match="refused"):
        await dial(HOST, port, "any", 5.0)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--version"],
        ["get"],
        ["get", "file"],
        ["get", "--help", "ftp://127.0.0.1:{port}/file"],
        ["doctor", "ftp://127.0.0.1:{port}/file"],
        ["get", "http://127.0.0.1:{port}/file"],
        ["get", "ftp://127.0.0.1:0{port}0/file"],
        ["get", "ftp://[::1]:{port}/file"],
        ["get", "ftp://%31:{port}/file"],
        ["get", "ftp://:{port}/file"],
        ["get", "ftp://x..y:{port}/file"],
    ],
)
async def test_nothing_is_begun(listener: socket.socket, arguments: list[str]) -> None:
    ahead.begin([each.format(port=port_of(listener)) for each in arguments])
    assert is_quiet(listener)


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("ftp://host", ("host", 21)),
        ("ftp://a:b@host/", ("host", 21)),
        ("ftp://host:2121/a@b:c", ("host", 2121)),
        ("ftps://host/", ("host", 990)),
        ("ftpes://host/", ("host", 21)),
    ],
)
def test_places(url: str, place: tuple[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[tuple[str, int]] = []
    monkeypatch.setattr(ahead, "HeadStart", lambda host, port, family: begun.append((host, port)))
    ahead.begin(["put", "file", url])
    assert begun == [place]
