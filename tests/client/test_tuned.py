"""Our client and our server: what is asked with OPTS MULT is done on both sides."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import xftp
from xftp.client.session import Session
from xftp.errors import TuningRefused
from xftp.protocol.options import MultOptions

from ..support import running_server
from .scripted import HOST, names
from .tuning_fakes import ASKED, DATA, WIRE, FakeTuner, Maker


@pytest.fixture
def root(root: Path) -> Path:
    (root / "there").write_bytes(DATA)
    return root


@contextlib.asynccontextmanager
async def ours(root: Path, tuner: FakeTuner | None, **options: Any) -> AsyncIterator[Session]:
    """Run our server and log in."""
    async with running_server(root, tuner=tuner) as server:
        url = f"ftp://{HOST}:{server.server_port}/"
        async with xftp.connect(url, options=xftp.Options(**options)) as session:
            yield session


@pytest.mark.parametrize("passive", [True, False])
@pytest.mark.parametrize("count", [1, 4])
async def test_both_sides_are_set(root: Path, tmp_path: Path, count: int, passive: bool) -> None:
    maker, tuner = Maker(), FakeTuner()
    notices: list[str] = []
    async with ours(
        root, tuner, connections=count, passive=passive, tuning=maker, notice=notices.append
    ) as session:
        down = await session.get("there", tmp_path / "here")
        up = await session.put(tmp_path / "here", "again")
    assert down is not None
    assert up is not None
    assert (root / "again").read_bytes() == DATA
    assert maker.told == [("download", count), ("upload", count)]
    assert all(rtt_s is not None and 0 < rtt_s < 1 for rtt_s in maker.rtts_s)
    announced = count if passive and count > 1 else None
    replaces = 1 if count > 1 else None
    expected = replace(ASKED, connections=announced, replaces=replaces)
    assert {granted for granted, _ in tuner.applied} == {expected}
    assert {connections for _, connections in tuner.applied} == {count}
    assert set(maker.own.ports) == {0}
    assert maker.own.closed >= 2, "what was changed of the machine is put back"
    if passive:
        assert len(maker.own.ports) == 2 * count
    else:
        # Of a listener: itself only. One whose port somebody has is made once more.
        assert 2 <= len(maker.own.ports) < 2 * count + 2
    for report in (down, up):
        assert [each.socket for each in report.connections] == [{"congestion": "observed"}] * count
    assert notices == []


async def test_less_is_told_once(root: Path, tmp_path: Path) -> None:
    notices: list[str] = []
    tuner = FakeTuner(most=30_000)
    async with ours(root, tuner, connections=2, tuning=Maker(), notice=notices.append) as session:
        for name in ("a", "b"):
            await session.get("there", tmp_path / name)
            assert (tmp_path / name).read_bytes() == DATA
    assert notices == ["SendBuffer 70000 was asked of the server, which grants 30000"]
    assert tuner.applied[-1][0].send_buffer_bytes == 30_000


@pytest.mark.parametrize("passive", [True, False])
@pytest.mark.parametrize("count", [1, 2])
async def test_less_ends_it_before_anything_moves_if_that_is_strict(
    root: Path, tmp_path: Path, count: int, passive: bool
) -> None:
    (tmp_path / "mine").write_bytes(DATA)
    async with ours(
        root,
        FakeTuner(most=30_000),
        connections=count,
        passive=passive,
        tuning=Maker(),
        strict_tuning=True,
        retries=3,
    ) as session:
        with pytest.raises(TuningRefused, match=r"SendBuffer 70000 .* grants 30000"):
            await session.get("there", tmp_path / "here")
        with pytest.raises(TuningRefused):
            await session.put(tmp_path / "mine", "new")
    assert names(root) == ["there"]
    assert names(tmp_path) == ["mine", "root"]


async def test_the_session_goes_on_after_a_refusal(root: Path, tmp_path: Path) -> None:
    maker = Maker()
    async with ours(
        root, FakeTuner(most=30_000), connections=2, tuning=maker, strict_tuning=True
    ) as session:
        with pytest.raises(TuningRefused):
            await session.get("there", tmp_path / "here")
        maker.asks = replace(ASKED, send_buffer_bytes=20_000)
        await session.get("there", tmp_path / "here")
    assert (tmp_path / "here").read_bytes() == DATA


async def test_a_server_without_a_tuner(root: Path, tmp_path: Path) -> None:
    notices: list[str] = []
    trace: list[str] = []
    async with ours(
        root, None, connections=2, tuning=Maker(), notice=notices.append, trace=trace.append
    ) as session:
        for name in ("a", "b"):
            await session.get("there", tmp_path / name)
    assert notices == [
        "the server does not let its sockets be set: Congestion, InitialWindow, Rate, SendBuffer"
    ]
    assert trace.count("> OPTS MULT Connections=2;Replace=1;") == 2


async def test_streams_and_listings_are_set_too(root: Path) -> None:
    maker, tuner, came = Maker(), FakeTuner(), bytearray()
    async with ours(root, tuner, connections=4, tuning=maker) as session:
        await session.get_stream("there", came.extend)
        pieces = [b"abc", b""]
        await session.put_stream(lambda: pieces.pop(0), "new")
        assert len(await session.list()) == 2
    assert came == DATA
    assert maker.told[:2] == [("download", 1), ("upload", 1)]
    assert {connections for _, connections in tuner.applied} == {1}


async def test_nothing_asked_sends_nothing(root: Path, tmp_path: Path) -> None:
    trace: list[str] = []
    maker = Maker(asks=MultOptions())
    async with ours(root, FakeTuner(), connections=1, tuning=maker, trace=trace.append) as session:
        await session.get("there", tmp_path / "here")
    assert not [line for line in trace if line.startswith("> OPTS MULT")]
    assert maker.own.ports == [0]


async def test_what_was_set_is_taken_back(root: Path, tmp_path: Path) -> None:
    maker, tuner = Maker(), FakeTuner()
    trace: list[str] = []
    async with ours(root, tuner, connections=1, tuning=maker, trace=trace.append) as session:
        await session.get("there", tmp_path / "a")
        maker.asks = MultOptions()
        await session.get("there", tmp_path / "b")
        await session.get("there", tmp_path / "c")
    asked = [line for line in trace if line.startswith("> OPTS MULT")]
    assert asked == [f"> OPTS MULT {WIRE}", "> OPTS MULT"]
    assert [granted for granted, _ in tuner.applied] == [ASKED, MultOptions(), MultOptions()]
