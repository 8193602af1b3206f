"""The standing port was dialled in vain: the second time nothing is forgotten, or said twice."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

import xftp
from tests.support import running_server
from xftp.client import several
from xftp.client.series import Pair
from xftp.server import Server
from xftp.server.limits import Limit, Limits

from .scripted import names
from .test_restart import DATA, HELD, MISSING, ROUNDED, SIZE, WAYS, Ends

COUNT, GRANTED = 4, 2


@pytest.fixture(autouse=True)
def every_path_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(several, "LONG_RTT_S", 0.0)


@pytest.fixture
async def server(root: Path) -> AsyncIterator[Server]:
    """Run a server that grants fewer connections than MULT says."""
    limits = Limits(data_connections=Limit(per_address=GRANTED))
    async with running_server(root, limits=limits) as running:
        yield running


@pytest.fixture
def ends(direction: str, root: Path, here: Path, server: Server) -> Ends:
    return Ends(direction, root, here, server)


def was_in_vain(ends: Ends) -> bool:
    return len(ends.said("MPSV")) == 2


@WAYS
@pytest.mark.parametrize("existing", ["fail", "resume", "renew"])
async def test_a_cut_transfer_goes_on_with_its_holes(ends: Ends, existing: str) -> None:
    ends.leave(HELD)
    report = await ends.move(connections=COUNT, existing=existing)
    assert was_in_vain(ends)
    assert ends.is_right()
    assert report is not None
    assert MISSING <= report.bytes <= MISSING + ROUNDED
    assert len(report.connections) == GRANTED


@WAYS
async def test_a_transfer_goes_on_behind_what_is_there(ends: Ends) -> None:
    if ends.is_down:
        ends.target.write_bytes(DATA[:1_000_000])
    else:
        ends.leave([(0, 1_000_000)])
    report = await ends.move(connections=COUNT, existing="resume", verify="never")
    assert was_in_vain(ends)
    assert ends.is_right()
    assert report is not None
    assert report.offset == 1_000_000
    assert SIZE - 1_000_000 <= report.bytes <= SIZE - 1_000_000 + 8192


@WAYS
@pytest.mark.parametrize("strict", [False, True])
async def test_a_series_is_named_as_often_as_it_takes(
    direction: str, server: Server, root: Path, here: Path, strict: bool
) -> None:
    """With strict tuning the transfer waits for the connections, and the names are in force."""
    source, target = (root, here) if direction == "down" else (here, root)
    contents = {str(number): DATA[: number * 1000] for number in range(20)}
    for name, content in contents.items():
        (source / name).write_bytes(content)
    lines: list[str] = []
    options = xftp.Options(connections=COUNT, strict_tuning=strict, trace=lines.append)
    url = f"ftp://127.0.0.1:{server.server_port}/"
    async with xftp.connect(url, options=options) as session:
        await session.features()  # proven: what changes files may leave in flights
        pairs = [Pair(here / name, name) for name in contents]
        way = "download" if direction == "down" else "upload"
        result = await session.move_series(way, pairs)
    assert sum(line.startswith("> MPSV") for line in lines) == 2
    assert not result.failures
    assert {name: (target / name).read_bytes() for name in names(target)} == contents
