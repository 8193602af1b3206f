"""Data connections within TLS: the same transfers, and what only TLS can go wrong at."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest

from xftp.transport.active import ActiveChannel
from xftp.transport.passive import PassiveChannel
from xftp.transport.plain import PlainReceiver, PlainSender, StreamSender
from xftp.transport.ratelimit import RateLimit
from xftp.transport.receiver import RecordReceiver
from xftp.transport.sender import RecordSender
from xftp.transport.tls import TLS_RECORD_BYTES

from .proxy import Pair, Proxy, proxied
from .support import HOST, partial
from .test_lasting import COUNTS, ROLES, descriptors, nothing_is_left, reset_first, transfer
from .tls_support import (
    DATA,
    EITHER_VERSION,
    VERSIONS,
    both,
    both_sides,
    linked_by_tls,
    source_of,
)


@EITHER_VERSION
@pytest.mark.parametrize("count", [1, 4, 8])
@pytest.mark.parametrize("size", [0, 1, 8193, len(DATA)])
@pytest.mark.parametrize("server_sends", [True, False], ids=["download", "upload"])
@pytest.mark.parametrize("server_dials", [True, False], ids=["active", "passive"])
async def test_records(
    tmp_path: Path,
    version: ssl.TLSVersion,
    count: int,
    size: int,
    server_sends: bool,
    server_dials: bool,
) -> None:
    source = source_of(tmp_path / "source", DATA[:size])
    target = partial(tmp_path / "target")
    passive, active = linked_by_tls(count, *both_sides(version), server_dials=server_dials)
    sends, receives = (passive, active) if server_sends != server_dials else (active, passive)
    sender, receiver = RecordSender(sends, source), RecordReceiver(receives, target, size)
    await both(sender, receiver)
    target.commit(receiver.size)
    source.close()
    assert (tmp_path / "target").read_bytes() == DATA[:size]
    for report in (sender.report(), receiver.report()):
        assert sum(each.bytes for each in report.connections) == size + 4 * -(-size // 8192)
        for each in report.connections:
            assert each.socket["tls"] == ("TLSv1.2" if version is VERSIONS[0] else "TLSv1.3")
            assert "GCM" in str(each.socket["tls_cipher"])


@EITHER_VERSION
@pytest.mark.parametrize("size", [0, 1, TLS_RECORD_BYTES, len(DATA)])
async def test_plain(tmp_path: Path, version: ssl.TLSVersion, size: int) -> None:
    source = source_of(tmp_path / "source", DATA[:size])
    passive, active = linked_by_tls(1, *both_sides(version))
    received = bytearray()
    receiver = PlainReceiver(active, lambda piece, _: received.extend(piece), size)
    await both(PlainSender(passive, source), receiver)
    source.close()
    assert received == DATA[:size]


async def test_stream() -> None:
    passive, active = linked_by_tls(1, *both_sides())
    pieces = [DATA[at : at + 99_999] for at in range(0, len(DATA), 99_999)]
    pieces_and_pauses = [each for piece in pieces for each in (piece, None)]
    received = bytearray()
    receiver = PlainReceiver(active, lambda piece, _: received.extend(piece))
    await both(
        StreamSender(passive, lambda: pieces_and_pauses.pop(0) if pieces_and_pauses else b""),
        receiver,
    )
    assert received == DATA


@pytest.mark.parametrize("sender_is_limited", [True, False])
@pytest.mark.parametrize("plain", [True, False])
async def test_with_a_limited_rate(tmp_path: Path, sender_is_limited: bool, plain: bool) -> None:
    """Pieces that are smaller than a TLS record leave something behind that was decrypted."""
    data, limit = DATA[:100_000], RateLimit(400_000)
    limits = (limit, None) if sender_is_limited else (None, limit)
    source, received = source_of(tmp_path / "source", data), bytearray()
    passive, active = linked_by_tls(1 if plain else 3, *both_sides())
    target = partial(tmp_path / "target")
    if plain:
        await both(
            PlainSender(passive, source, limit=limits[0]),
            PlainReceiver(active, lambda piece, _: received.extend(piece), limit=limits[1]),
        )
        assert received == data
        target.discard()
    else:
        await both(
            RecordSender(passive, source, limit=limits[0]),
            RecordReceiver(active, target, len(data), limit=limits[1]),
        )
        target.commit(len(data))
        assert (tmp_path / "target").read_bytes() == data
    source.close()


@COUNTS
@ROLES
async def test_lost_connections_are_replaced(
    tmp_path: Path, count: int, sender_dials: bool, server_sends: bool
) -> None:
    before = descriptors()
    ended = await transfer(
        tmp_path,
        count,
        reset_first(count),
        sender_dials=sender_dials,
        server_sends=server_sends,
        tls=both_sides(),
    )
    assert ended.sender.lost_connections >= 1
    assert len(ended.proxy.pairs) > count, "it is replaced"
    await nothing_is_left(before)


async def test_silent_connections_are_replaced(tmp_path: Path) -> None:
    def fault(proxy: Proxy, pair: Pair) -> None:
        if pair.moved > 100_000 and all(each.flowing.is_set() for each in proxy.pairs):
            pair.freeze()

    ended = await transfer(
        tmp_path, 4, fault, sender_dials=False, server_sends=True, tls=both_sides()
    )
    assert ended.sender.report().repeated_bytes > 0


async def test_the_handshakes_run_at_once() -> None:
    """None is answered before all have begun, which would be never if one waited for another."""
    server, client = both_sides()
    passive = PassiveChannel.listen(HOST, HOST, expected=8, limit=8, tls=server)

    def hold(proxy: Proxy, pair: Pair) -> None:
        all_began = len(proxy.pairs) == 8 and all(each.moved for each in proxy.pairs)
        for each in proxy.pairs:
            if all_began:
                each.thaw()
        if not all_began:
            pair.freeze()

    async with proxied(passive.endpoint, lambda pair: hold(proxy, pair)) as proxy:
        active = ActiveChannel([proxy.endpoint] * 8, tls=client)
        async with asyncio.timeout(20):
            while len(active.connections) < 8:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        active.close()
        passive.close()
