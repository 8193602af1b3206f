import asyncio
import socket
import threading
import time
from typing import Any

import pytest

from xftp.client import ahead, dialling
from xftp.client.dialling import dial
from xftp.errors import ConnectError

HOST = "127.0.0.1"


def free_port() -> int:
    with socket.create_server((HOST, 0)) as sock:
        port: int = sock.getsockname()[1]
        return port


def resolve_to(monkeypatch: pytest.MonkeyPatch, *addresses: tuple[str, int]) -> None:
    def getaddrinfo(*_: Any, **__: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", each) for each in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)


async def test_the_second_address_is_tried_when_the_first_refuses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.create_server((HOST, 0)) as listener:
        resolve_to(monkeypatch, (HOST, free_port()), listener.getsockname())
        sock = await dial("name", 21, "any", 10)
        assert sock.getpeername() == listener.getsockname()
        sock.close()


async def test_the_second_address_is_tried_beside_a_silent_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dialling, "STAGGER_S", 0.01)
    real = dialling._connect
    never, tried = asyncio.Event(), []

    async def connect(where: ahead.Address, *others: Any) -> socket.socket:
        if where[1] == ("192.0.2.1", 1):
            tried.append(where[1])
            await never.wait()
        return await real(where, *others)

    monkeypatch.setattr(dialling, "_connect", connect)
    with socket.create_server((HOST, 0)) as listener:
        resolve_to(monkeypatch, ("192.0.2.1", 1), listener.getsockname())
        sock = await dial("name", 21, "any", 10)
        assert sock.getpeername() == listener.getsockname()
        sock.close()
    assert tried


async def test_a_refused_connection_is_a_connect_error() -> None:
    port = free_port()
    with pytest.raises(ConnectError, match=f"{HOST} port {port}: Connection refused") as caught:
        await dial(HOST, port, "any", 10)
    assert caught.value.exit_code == 3


async def test_a_silent_host_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    async def connect(*_: Any) -> socket.socket:
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr(dialling, "_connect", connect)
    with pytest.raises(ConnectError, match="no answer within"):
        await dial(HOST, 21, "any", 0.01)


@pytest.mark.parametrize(
    ("host", "reason"),
    [
        ("does-not-exist.invalid", "does-not-exist.invalid port 21: "),
        ("a" * 64 + ".invalid", "is not a host name"),
        ("x..y", "x..y is not a host name"),
    ],
)
async def test_a_name_that_does_not_exist_is_a_connect_error(host: str, reason: str) -> None:
    with pytest.raises(ConnectError, match=reason):
        await dial(host, 21, "any", 10)


def test_nobody_waits_for_a_name_server_that_does_not_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answered = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: answered.wait(60.0))
    began_s = time.monotonic()
    with pytest.raises(ConnectError, match="no answer within"):
        asyncio.run(dial("name", 21, "any", 0.01))
    assert time.monotonic() - began_s < 30.0
    answered.set()


async def test_the_family_is_respected() -> None:
    with socket.create_server((HOST, 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(ConnectError):
            await dial(HOST, port, "ipv6", 10)
        (await dial(HOST, port, "ipv4", 10)).close()
