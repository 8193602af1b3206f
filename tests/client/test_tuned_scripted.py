"""What is made of a server's answer to OPTS MULT, with servers that do as they like."""

from __future__ import annotations

from pathlib import Path

import pytest

from xftp.client.options import Direction
from xftp.errors import PeerError, TuningRefused
from xftp.protocol.options import MultOptions
from xftp.transport.sockets import Tuning

from .scripted import (
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
from .tuning_fakes import DATA, WIRE, Maker

KEYS = "Congestion;InitialWindow;Rate;SendBuffer;ReceiveBuffer;"


def feat(mult: str) -> str:
    """Write a reply to FEAT."""
    return f"211-\r\n MULT {mult}\r\n SIZE\r\n EPSV\r\n EPRT\r\n211 end"


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
            self, direction: Direction, connections: int, rtt_s: float | None, peer_host: str
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
