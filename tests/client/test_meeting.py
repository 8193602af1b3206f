"""On long paths xftpd dials beside our client, and whichever way gets through first is used."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

import xftp
from xftp.client import data, tuned
from xftp.client.series import Pair
from xftp.errors import ReplyError
from xftp.protocol.addresses import Endpoint, format_mprt
from xftp.protocol.options import MULT_KEYS
from xftp.server import Server
from xftp.transport.meeting import MeetingChannel
from xftp.transport.passive import PassiveChannel

from .scripted import HOST, mpsv, names, records, scripted, sends_records

DATA = os.urandom(1_000_001)


@pytest.fixture
def met(monkeypatch: pytest.MonkeyPatch) -> list[MeetingChannel]:
    """Take every path for a long one; gives the channels that meet."""
    made: list[MeetingChannel] = []

    class Noted(MeetingChannel):
        def __init__(self, *arguments: object, **named: object) -> None:
            super().__init__(*arguments, **named)  # type: ignore[arg-type]
            made.append(self)

    monkeypatch.setattr(tuned, "LONG_RTT_S", 0.0)
    monkeypatch.setattr(data, "MeetingChannel", Noted)
    return made


@pytest.fixture
def unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the client name ports that nobody listens on, as if a firewall were in front of it."""

    def closed(endpoints: list[Endpoint]) -> str:
        return format_mprt([Endpoint(each.host, 1025) for each in endpoints])

    monkeypatch.setattr(data, "format_mprt", closed)


def url_of(server: Server) -> str:
    return f"ftp://127.0.0.1:{server.server_port}/"


async def fetch(
    url: str, target: Path, connections: int = 4, **options: object
) -> tuple[list[str], xftp.TransferReport | None]:
    """Fetch `a`; give the commands that were sent, and the report."""
    trace: list[str] = []
    chosen = xftp.Options(connections=connections, trace=trace.append, **options)  # type: ignore[arg-type]
    async with xftp.connect(url, options=chosen) as session:
        report = await session.get("a", target)
    return [line[2:] for line in trace if line.startswith("> ")], report


@pytest.mark.parametrize("count", [2, 8])
async def test_the_server_is_the_first(
    server: Server, root: Path, tmp_path: Path, met: list[MeetingChannel], count: int
) -> None:
    (root / "a").write_bytes(DATA)
    sent, report = await fetch(url_of(server), tmp_path / "a", count)
    assert (tmp_path / "a").read_bytes() == DATA
    (channel,) = met
    assert not channel.dials, "the server dialled, and would dial again"
    assert report is not None
    assert 1 <= len(report.connections) <= count
    verbs = [command.split()[0] for command in sent]
    assert verbs.index("RETR") == verbs.index("MPSV") + 1 == verbs.index("MPRT") + 2


@pytest.mark.usefixtures("unreachable")
@pytest.mark.parametrize("size", [0, 1, len(DATA)])
async def test_a_client_that_cannot_be_dialled(
    server: Server, root: Path, tmp_path: Path, met: list[MeetingChannel], size: int
) -> None:
    (root / "a").write_bytes(DATA[:size])
    await fetch(url_of(server), tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == DATA[:size]
    assert met[0].dials


@pytest.mark.parametrize("size", [0, 1, 8192, 8193])
async def test_small_files(
    server: Server, root: Path, tmp_path: Path, met: list[MeetingChannel], size: int
) -> None:
    (root / "a").write_bytes(DATA[:size])
    await fetch(url_of(server), tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == DATA[:size]
    assert len(met) == 1


async def test_many_files_at_once(
    server: Server, root: Path, here: Path, met: list[MeetingChannel]
) -> None:
    contents = {str(number): DATA[: number * 1000] for number in range(20)}
    for name, content in contents.items():
        (root / name).write_bytes(content)
    pairs = [Pair(here / name, name) for name in contents]
    async with xftp.connect(url_of(server), options=xftp.Options(connections=4)) as session:
        result = await session.move_series("download", pairs)
    assert not result.failures
    assert {name: (here / name).read_bytes() for name in names(here)} == contents
    assert met


async def test_the_server_may_be_given_one_port(
    server: Server,
    root: Path,
    tmp_path: Path,
    met: list[MeetingChannel],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (root / "a").write_bytes(DATA)
    free = PassiveChannel.listen(HOST, HOST)
    port = free.endpoint.port
    free.close()
    named: list[Endpoint] = []

    def noted(endpoints: list[Endpoint]) -> str:
        named.extend(endpoints)
        return format_mprt(endpoints)

    monkeypatch.setattr(data, "format_mprt", noted)
    await fetch(url_of(server), tmp_path / "a", listen_ports=(port,))
    assert (tmp_path / "a").read_bytes() == DATA
    assert {each.port for each in named} == {port}
    assert met


async def test_who_says_which_side_dials_gets_that(
    server: Server, root: Path, tmp_path: Path, met: list[MeetingChannel]
) -> None:
    (root / "a").write_bytes(DATA)
    sent, _ = await fetch(url_of(server), tmp_path / "a", meets=False)
    verbs = [command.split()[0] for command in sent]
    assert "MPSV" in verbs and "MPRT" not in verbs
    assert not met


async def test_a_short_path_is_not_worth_it(server: Server, root: Path, tmp_path: Path) -> None:
    (root / "a").write_bytes(DATA)
    sent, _ = await fetch(url_of(server), tmp_path / "a")
    assert not any(command.startswith("MPRT") for command in sent)


async def test_a_missing_file_is_told_as_ever(
    server: Server, tmp_path: Path, met: list[MeetingChannel]
) -> None:
    with pytest.raises(ReplyError) as caught:
        await fetch(url_of(server), tmp_path / "a")
    assert caught.value.code == 550
    assert not (tmp_path / "a").exists()
    assert met


def _keys() -> str:
    return "".join(f"{name};" for name, _ in MULT_KEYS)


@pytest.mark.parametrize(
    ("listed", "granted", "mprt"),
    [
        (_keys(), "200 MULT Connections=2;", "200 Will open 2."),
        (_keys(), "200 MULT Connections=2;Both=1;", "504 Your own address only."),
        ("Connections;", "200 MULT Connections=2;", "200 Will open 2."),
    ],
    ids=["not granted", "address of another network", "not listed"],
)
async def test_without_the_servers_help_our_side_dials(
    tmp_path: Path,
    met: list[MeetingChannel],
    monkeypatch: pytest.MonkeyPatch,
    listed: str,
    granted: str,
    mprt: str,
) -> None:
    listeners: list[PassiveChannel] = []
    listen: Callable[..., PassiveChannel] = PassiveChannel.listen

    def noted(*arguments: object, **named: object) -> PassiveChannel:
        listeners.append(listen(*arguments, **named))
        return listeners[-1]

    monkeypatch.setattr(PassiveChannel, "listen", noted)
    content = DATA[:20_000]
    script = {
        "FEAT": f"211-\r\n MULT {listed}\r\n SIZE\r\n MDTM\r\n211 end",
        "MULT": "200 2 data connections available.",
        "OPTS": granted,
        "MPRT": mprt,
        "MPSV": mpsv(2),
        "SIZE": f"213 {len(content)}",
        "MDTM": "213 20200101000000",
        "RETR": sends_records(records(content, [0, 1]), records(content, [2])),
    }
    async with scripted(script, greeting="220 XFTP server ready.") as server:
        await fetch(f"ftp://{HOST}:{server.port}/", tmp_path / "a", 2, verify="never")
    assert (tmp_path / "a").read_bytes() == content
    assert not met
    assert all(each.is_discarded for each in listeners)
    assert bool(listeners) is (listed == _keys())
