"""SITE REPORT: what the server's sockets had in the last transfer of the session."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest

from tests.support import RawClient, raw_session, running_server
from xftp.protocol.reports import ReportedTransfer, parse_report
from xftp.server import Server

from .support import dial, extended_port
from .test_tuning import FakeTuner, FakeTuning

CONTENT = bytes(300_000)


class Observing(FakeTuning):
    def observe(self, sock: object) -> Mapping[str, object]:
        return {"congestion": "reno", "min_rtt_s": 0.5, "initial_window_segments": None}


class Tuner(FakeTuner):
    def tuning(self, granted: object, connections: int, peer_host: str) -> FakeTuning:
        return Observing(self, granted, connections)  # type: ignore[arg-type]


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    (tmp_path / "file").write_bytes(CONTENT)
    async with running_server(tmp_path, tuner=Tuner()) as running:
        yield running


@pytest.fixture
async def client(server: Server) -> AsyncIterator[RawClient]:
    async with raw_session(server) as made:
        assert (await made.command("TYPE I")).code == 200
        yield made


async def moved(client: RawClient, command: str, content: bytes = b"") -> bytes:
    data = await dial(extended_port((await client.command("EPSV")).text))
    assert (await client.command(command)).code == 150
    data.writer.write(content)
    data.writer.write_eof()
    received = await data.read()
    assert (await client.reply()).code == 226
    return received


async def report(client: RawClient) -> ReportedTransfer:
    reply = await client.command("SITE REPORT")
    assert reply.code == 211
    return parse_report(reply.lines)


async def test_it_is_offered(client: RawClient) -> None:
    assert "SITE REPORT;MLSD" in [line.strip() for line in (await client.command("FEAT")).lines]


async def test_of_a_download_and_of_an_upload(client: RawClient) -> None:
    await moved(client, "RETR file")
    sent = await report(client)
    assert (sent.direction, sent.bytes) == ("sent", len(CONTENT))
    assert sent.duration_us >= 0
    (connection,) = sent.connections
    assert (connection.number, connection.bytes) == (0, len(CONTENT))
    assert (connection.congestion, connection.min_rtt_us) == ("reno", 500_000)
    assert connection.initial_window_segments is None
    assert connection.rtt_us is not None
    assert connection.retransmits is not None
    assert await report(client) == sent, "as often as wanted"
    await moved(client, "STOR new", b"12345")
    received = await report(client)
    assert (received.direction, received.bytes) == ("received", 5)


async def test_a_listing_is_no_file(client: RawClient) -> None:
    await moved(client, "RETR file")
    await moved(client, "NLST")
    assert (await report(client)).bytes == len(CONTENT)


async def test_before_anything_moved(client: RawClient) -> None:
    assert (await client.command("SITE REPORT")).code == 503


async def test_a_transfer_that_failed_leaves_no_report(client: RawClient) -> None:
    await moved(client, "RETR file")
    assert (await client.command("EPSV")).code == 229
    assert (await client.command("RETR missing")).code == 550
    assert (await client.command("SITE REPORT")).code == 503


async def test_nothing_is_told_to_another_session(server: Server, client: RawClient) -> None:
    await moved(client, "RETR file")
    async with raw_session(server) as other:
        assert (await other.command("SITE REPORT")).code == 503
    assert (await client.command("REIN")).code == 220
    assert (await client.command("SITE REPORT")).code == 530
    await client.log_in()
    assert (await client.command("SITE REPORT")).code == 503
