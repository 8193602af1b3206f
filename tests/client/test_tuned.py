"""Sockets of both sides: what is asked of a server, what is made of its answer."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

import xftp
from xftp.client.options import Direction
from xftp.client.session import Session
from xftp.errors import PeerError, TuningRefused
from xftp.protocol.options import MultOptions
from xftp.transport.sockets import Tuning

from ..support import running_server
from .scripted import (
    HOST,
    Conversation,
    Handler,
    epsv,
    mpsv,
    names,
    pasv,
    receives,
    records,
    scripted,
    sends,
    sends_records,
    session_with,
)

DATA = os.urandom(100_001)
ASKED = MultOptions(
    congestion="reno", initial_window_segments=40, rate_bps=5_000_000, send_buffer_bytes=70_000
)
WIRE = "Congestion=reno;InitialWindow=40;Rate=5000000;SendBuffer=70000;"
KEYS = "Congestion;InitialWindow;Rate;SendBuffer;ReceiveBuffer;"


def feat(mult: str) -> str:
    """Write a reply to FEAT."""
    return f"211-\r\n MULT {mult}\r\n SIZE\r\n EPSV\r\n EPRT\r\n211 end"


@dataclass
class Own:
    """The tuning of this side's sockets: notes where it is applied."""

    ports: list[int] = field(default_factory=list)
    """Of each socket when it was set: 0 before bind, connect and listen."""

    def apply(self, sock: socket.socket) -> None:
        self.ports.append(sock.getsockname()[1])

    def observe(self, sock: socket.socket) -> Mapping[str, object]:
        return {"congestion": "observed", "min_rtt_s": None}


@dataclass
class Maker:
    """A TuningMaker that notes what it is told."""

    asks: MultOptions = ASKED
    own: Own = field(default_factory=Own)
    told: list[tuple[str, int]] = field(default_factory=list)
    rtts_s: list[float | None] = field(default_factory=list)

    def __call__(
        self, direction: Direction, connections: int, rtt_s: float | None
    ) -> tuple[Tuning, MultOptions]:
        self.told.append((direction, connections))
        self.rtts_s.append(rtt_s)
        return self.own, self.asks


@dataclass
class FakeTuner:
    """The server's side: reduces the send buffer to `most`, refuses what it does not list."""

    keys: tuple[str, ...] = ("Congestion", "InitialWindow", "Rate", "SendBuffer", "ReceiveBuffer")
    most: int = 10**9
    applied: list[tuple[MultOptions, int]] = field(default_factory=list)

    def grant(self, asked: MultOptions) -> MultOptions:
        size = asked.send_buffer_bytes
        return replace(asked, send_buffer_bytes=size and min(size, self.most))

    def tuning(self, granted: MultOptions, connections: int) -> Tuning:
        tuner = self

        class Theirs(Own):
            def apply(self, sock: socket.socket) -> None:
                tuner.applied.append((granted, connections))

        return Theirs()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    path = tmp_path / "root"
    path.mkdir()
    (path / "there").write_bytes(DATA)
    return path


@contextlib.asynccontextmanager
async def ours(root: Path, tuner: FakeTuner | None, **options: Any) -> AsyncIterator[Session]:
    """Run our server and log in."""
    async with running_server(root, tuner=tuner) as server:
        url = f"ftp://{HOST}:{server.server_port}/"
        async with xftp.connect(url, options=xftp.Options(**options)) as session:
            yield session


def multiple(options: Handler, mult: str = f"Connections;{KEYS}") -> dict[str, Handler]:
    """Script a server that sends DATA in records over two connections."""
    return {
        "FEAT": feat(mult),
        "MULT": "200 8 data connections available.",
        "OPTS": options,
        "MPSV": mpsv(2),
        "RETR": sends_records(
            records(DATA, list(range(0, 13, 2))), records(DATA, list(range(1, 13, 2)))
        ),
        "SIZE": f"213 {len(DATA)}",
    }


def single(options: Handler, mult: str = f"Connections;{KEYS}") -> dict[str, Handler]:
    """Script a server that sends DATA over one connection."""
    return {
        "FEAT": feat(mult),
        "OPTS": options,
        "EPSV": epsv,
        "PASV": pasv,
        "RETR": sends(DATA),
        "SIZE": f"213 {len(DATA)}",
    }


# -- with our own server -------------------------------------------------------------------------


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
    assert {granted for granted, _ in tuner.applied} == {replace(ASKED, connections=announced)}
    assert {connections for _, connections in tuner.applied} == {count}
    assert set(maker.own.ports) == {0}
    assert len(maker.own.ports) == 2 * (count if passive else 1)  # of a listener: itself only
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
    assert trace.count("> OPTS MULT Connections=2;") == 2


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


# -- with servers that do as they like -----------------------------------------------------------


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(
    ("mult", "sent", "missing"),
    [
        ("Connections;Rate;", "Rate=5000000;", "Congestion, InitialWindow, SendBuffer"),
        ("connections;RATE;colour;", "Rate=5000000;", "Congestion, InitialWindow, SendBuffer"),
        (
            "Connections; Rate; SendBuffer",
            "Rate=5000000;SendBuffer=70000;",
            "Congestion, InitialWindow",
        ),
        ("Connections;", "", "Congestion, InitialWindow, Rate, SendBuffer"),
    ],
)
async def test_what_feat_does_not_list_is_not_sent(
    tmp_path: Path, mult: str, sent: str, missing: str, strict: bool
) -> None:
    notices: list[str] = []
    script = multiple(f"200 MULT Connections=2;{sent}", mult)
    async with (
        scripted(script) as server,
        session_with(
            server, connections=2, tuning=Maker(), notice=notices.append, strict_tuning=strict
        ) as session,
    ):
        said = f"the server does not let its sockets be set: {missing}"
        if strict:
            with pytest.raises(TuningRefused, match=said):
                await session.get("a", tmp_path / "a")
            assert not {"OPTS", "MPSV", "RETR"} & set(server.verbs())
            return
        for name in ("a", "b"):
            await session.get("a", tmp_path / name)
            assert (tmp_path / name).read_bytes() == DATA
        assert notices == [said]
        assert server.heard.count(f"OPTS MULT Connections=2;{sent}") == 2


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("feature", ["500 what?", "211-\r\n SIZE\r\n211 end", "211 none"])
async def test_a_server_that_has_no_opts(tmp_path: Path, count: int, feature: str) -> None:
    notices: list[str] = []
    script: dict[str, Handler] = single("500 what?") | {"FEAT": feature, "MULT": "502 no"}
    async with (
        scripted(script) as server,
        session_with(server, connections=count, tuning=Maker(), notice=notices.append) as session,
    ):
        await session.get("a", tmp_path / "a")
        assert (tmp_path / "a").read_bytes() == DATA
        assert "OPTS" not in server.verbs()
    assert notices == [
        "the server does not let its sockets be set: Congestion, InitialWindow, Rate, SendBuffer"
    ]


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (f"200 MULT {WIRE}", []),
        (f"200 MULT Connections=2;{WIRE} Ignored: nothing.", []),
        (f"200 MULT {WIRE}Colour=red;", []),
        (
            "200 MULT Congestion=cubic;InitialWindow=10;Rate=5000000;SendBuffer=90000;",
            [
                "Congestion reno was asked of the server, which grants cubic",
                "InitialWindow 40 was asked of the server, which grants 10",
                "SendBuffer 70000 was asked of the server, which grants 90000",
            ],
        ),
        (
            "200 MULT Rate=5000000; Ignored: Congestion.",
            [
                "Congestion reno was asked of the server, which does not grant it",
                "InitialWindow 40 was asked of the server, which does not grant it",
                "SendBuffer 70000 was asked of the server, which does not grant it",
            ],
        ),
        *(
            (
                reply,
                [
                    f"{key} was asked of the server, which does not grant it"
                    for key in (
                        "Congestion reno",
                        "InitialWindow 40",
                        "Rate 5000000",
                        "SendBuffer 70000",
                    )
                ],
            )
            for reply in ("200 MULT", "501 no", "500 what?", "451 later")
        ),
    ],
)
async def test_what_is_granted_is_compared(
    tmp_path: Path, count: int, reply: str, said: list[str]
) -> None:
    notices: list[str] = []
    script = multiple(reply) if count > 1 else single(reply)
    async with (
        scripted(script) as server,
        session_with(server, connections=count, tuning=Maker(), notice=notices.append) as session,
    ):
        for name in ("a", "b"):
            await session.get("a", tmp_path / name)
            assert (tmp_path / name).read_bytes() == DATA
    assert notices == said


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("passive", [True, False])
async def test_strict_refuses_before_the_transfer_command(
    tmp_path: Path, count: int, passive: bool
) -> None:
    script = multiple("200 MULT Rate=5000000;") | single("200 MULT Rate=5000000;")
    script |= {"MPRT": "200 fine", "EPRT": "200 fine", "ALLO": "200 fine"}
    (tmp_path / "mine").write_bytes(DATA)
    async with (
        scripted(script) as server,
        session_with(
            server, connections=count, passive=passive, tuning=Maker(), strict_tuning=True
        ) as session,
    ):
        with pytest.raises(TuningRefused, match="Congestion reno"):
            await session.get("a", tmp_path / "a")
        with pytest.raises(TuningRefused, match="Congestion reno"):
            await session.put(tmp_path / "mine", "a", existing="overwrite")
        assert not {"RETR", "STOR"} & set(server.verbs())
    assert names(tmp_path) == ["mine"]


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize(
    "reply",
    [
        "200 fine",
        "200",
        "200 mult Rate=5000000;",
        "200 MULT Rate=fast;",
        "200 MULT Rate=5000000;Rate=5000000;",
        "200 MULT Rate=0;",
        "200 MULT =1;",
        "200 MULT Congestion=\x1b[2J;",
    ],
)
async def test_a_reply_that_cannot_be_read_is_the_servers_fault(
    tmp_path: Path, count: int, reply: str
) -> None:
    script = multiple(reply) if count > 1 else single(reply)
    async with (
        scripted(script) as server,
        session_with(server, connections=count, tuning=Maker()) as session,
    ):
        with pytest.raises(PeerError, match="OPTS MULT: the reply cannot be read") as caught:
            await session.get("a", tmp_path / "a")
        assert str(caught.value).isprintable()
        assert "RETR" not in server.verbs()
    assert names(tmp_path) == []


async def test_who_asks_nothing_reads_no_reply(tmp_path: Path) -> None:
    async with (
        scripted(multiple("200 fine")) as server,
        session_with(server, connections=2, tuning=Maker(asks=MultOptions())) as session,
    ):
        await session.get("a", tmp_path / "a")
        assert (tmp_path / "a").read_bytes() == DATA
        assert "OPTS MULT Connections=2;" in server.heard


@pytest.mark.parametrize(
    ("count", "passive", "place", "options"),
    [
        (2, True, "MPSV", f"OPTS MULT Connections=2;{WIRE}"),
        (2, False, "MPRT", f"OPTS MULT {WIRE}"),
        (1, True, "EPSV", f"OPTS MULT {WIRE}"),
        (1, False, "EPRT", f"OPTS MULT {WIRE}"),
    ],
)
async def test_it_goes_before_the_addresses(
    tmp_path: Path, count: int, passive: bool, place: str, options: str
) -> None:
    async def mprt(talk: Conversation, argument: str) -> None:
        for port in argument.split("|")[3].split(","):
            talk.data.put_nowait(await talk.dial(int(port)))
        talk.say("200 fine")

    script = multiple(f"200 MULT {WIRE}") if count > 1 else single(f"200 MULT {WIRE}")
    script |= {"MPRT": mprt, "EPRT": mprt}
    async with (
        scripted(script) as server,
        session_with(server, connections=count, passive=passive, tuning=Maker()) as session,
    ):
        await session.get("a", tmp_path / "a")
        assert (tmp_path / "a").read_bytes() == DATA
        heard = server.heard
        at = [verb.split(" ")[0] for verb in heard].index(place)
        assert heard.index(options) == at - 1


async def test_the_way_back_to_one_connection_is_set_for_one(tmp_path: Path) -> None:
    maker, notices = Maker(), list[str]()
    script = multiple(f"200 MULT {WIRE}") | single(f"200 MULT {WIRE}") | {"MPSV": "500 what?"}
    async with (
        scripted(script) as server,
        session_with(server, connections=4, tuning=maker, notice=notices.append) as session,
    ):
        await session.get("a", tmp_path / "a")
        assert (tmp_path / "a").read_bytes() == DATA
        asked = [line for line in server.heard if line.startswith("OPTS MULT")]
    assert maker.told == [("download", 4), ("download", 1)]
    assert asked == [f"OPTS MULT Connections=4;{WIRE}", f"OPTS MULT {WIRE}"]
    assert notices == []


async def test_a_maker_may_refuse(tmp_path: Path) -> None:
    class Refusing(Maker):
        def __call__(
            self, direction: Direction, connections: int, rtt_s: float | None
        ) -> tuple[Tuning, MultOptions]:
            raise TuningRefused("not like this")

    async with (
        scripted(multiple("200 MULT")) as server,
        session_with(server, connections=2, tuning=Refusing()) as session,
    ):
        with pytest.raises(TuningRefused, match="not like this"):
            await session.get("a", tmp_path / "a")
        assert not {"MPSV", "RETR"} & set(server.verbs())


async def test_an_upload_asks_the_server_as_well(tmp_path: Path) -> None:
    into: list[bytes] = []
    (tmp_path / "mine").write_bytes(DATA)
    script = single(f"200 MULT {WIRE}") | {"STOR": receives(into), "ALLO": "200 fine"}
    async with (
        scripted(script) as server,
        session_with(server, tuning=Maker()) as session,
    ):
        await session.put(tmp_path / "mine", "a", existing="overwrite")
        assert f"OPTS MULT {WIRE}" in server.heard
    assert into == [DATA]
