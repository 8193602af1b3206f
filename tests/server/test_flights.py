"""Commands that come together, before the greeting, or while others wait."""

import asyncio
import re
import socket
from pathlib import Path

from tests.support import RawClient, raw_session, running_server
from tuning.tcp_info import tcp_info

FLIGHT = ("USER anonymous", "PASS x", "FEAT", "MULT", "TYPE I", "SIZE file", "MPSV")
CODES = [220, 331, 230, 211, 200, 200, 213, 229]


async def test_commands_before_the_greeting_are_answered_in_order(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    async with running_server(tmp_path) as server:
        client = RawClient(*await asyncio.open_connection("127.0.0.1", server.server_port))
        client.send(*FLIGHT)
        assert [(await client.reply()).code for _ in CODES] == CODES
        await client.close()


async def test_replies_to_a_flight_leave_in_few_segments(tmp_path: Path) -> None:
    """An initial window is ten segments: on a long path the eleventh is a round trip late."""
    async with running_server(tmp_path) as server, raw_session(server) as client:
        sock = client.writer.get_extra_info("socket")
        before = _data_segments(sock)
        client.send(*["NOOP"] * 40)
        for _ in range(40):
            assert (await client.reply()).code == 200
        assert _data_segments(sock) - before <= 10


def _data_segments(sock: socket.socket) -> int:
    info = tcp_info(sock)
    assert info is not None
    assert info.data_segs_in is not None
    return info.data_segs_in


async def test_a_reply_is_not_kept_back_by_a_command_that_takes_long(tmp_path: Path) -> None:
    """Behind NOOP comes a transfer that has to wait for its data connection."""
    async with running_server(tmp_path) as server, raw_session(server) as client:
        (tmp_path / "file").write_bytes(b"x")
        assert (await client.command("TYPE I")).code == 200
        port = _port((await client.command("EPSV")).text)
        client.send("NOOP", "RETR file", "NOOP")
        assert (await client.reply()).code == 200
        assert (await client.reply()).code == 150
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await reader.read() == b"x"
        assert [(await client.reply()).code for _ in range(2)] == [226, 200]
        writer.close()


async def test_data_connections_are_accepted_while_the_transfer_command_waits(
    tmp_path: Path,
) -> None:
    """One transfer runs, the next is queued behind its MPSV: both get their connections."""
    (tmp_path / "file").write_bytes(b"y" * 20_000)
    async with running_server(tmp_path) as server, raw_session(server) as client:
        client.send("TYPE I", "OPTS MULT Connections=3;", "MPSV", "RETR file")
        await client.reply()
        await client.reply()
        port = _mpsv_port((await client.reply()).text)
        streams = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
        received = await asyncio.gather(*(reader.read() for reader, _ in streams))
        assert sum(map(len, received)) == 20_000 + 4 * 3
        assert [(await client.reply()).code for _ in range(2)] == [150, 226]
        for _, writer in streams:
            writer.close()


def _port(text: str) -> int:
    found = re.search(r"\|\|\|(\d+)\|", text)
    assert found
    return int(found[1])


def _mpsv_port(text: str) -> int:
    found = re.search(r"TCP\|[^|]+\|(\d+)", text)
    assert found
    return int(found[1])
