"""Servers that lie, break or vanish: never a success that is none, never a wait without end."""

import contextlib
import os
from pathlib import Path

import pytest

from xftp.client import moving
from xftp.errors import PeerError, RecordError, ReplyError, TransferAborted, XftpError
from xftp.transport.kept import working_names

from .scripted import (
    Conversation,
    Handler,
    epsv,
    mpsv,
    names,
    records,
    scripted,
    sends,
    sends_records,
    session_with,
)

DATA = os.urandom(50_000)
PLAIN: dict[str, Handler] = {"EPSV": epsv, "SIZE": f"213 {len(DATA)}"}
STRIPED: dict[str, Handler] = {"MULT": "200 ok", "MPSV": mpsv(2), "SIZE": f"213 {len(DATA)}"}


@pytest.fixture(autouse=True)
def no_long_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moving, "GRACE_S", 0.2)
    monkeypatch.setattr(moving, "ABORT_WAIT_S", 0.2)


def kept(folder: Path) -> bytes:
    assert not (folder / "a").exists()
    part = folder / working_names("a")[0]
    return part.read_bytes() if part.exists() else b""


async def early_226(talk: Conversation, _: str) -> None:
    talk.say("150 go\r\n226 done")
    ((_reader, writer),) = await talk.connections()
    writer.write(DATA)
    writer.close()


async def early_226_records(talk: Conversation, _: str) -> None:
    talk.say("150 go\r\n226 done")
    first, second = await talk.connections(2)
    for (_reader, writer), numbers in ((first, [6, 5, 0]), (second, [3, 4, 1, 2])):
        writer.write(records(DATA, numbers))
        writer.close()


@pytest.mark.parametrize(
    "script", [{**PLAIN, "RETR": early_226}, {**STRIPED, "RETR": early_226_records}]
)
async def test_a_226_before_the_data_is_fine(tmp_path: Path, script: dict[str, Handler]) -> None:
    async with scripted(script) as server, session_with(server, connections=2) as session:
        await session.get("x", tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == DATA


async def early_refusal(talk: Conversation, _: str) -> None:
    talk.say("150 go")
    ((reader, writer),) = await talk.connections()
    writer.write(DATA[:1000])
    talk.say("451 disk on fire")
    with contextlib.suppress(ConnectionError):
        await reader.read()
    writer.close()


async def lost_control(talk: Conversation, _: str) -> None:
    talk.say("150 go")
    ((_reader, writer),) = await talk.connections()
    writer.write(DATA[:1000])
    talk.hang_up()


async def lost_control_after_all_data(talk: Conversation, _: str) -> None:
    talk.say("150 go")
    ((_reader, writer),) = await talk.connections()
    writer.write(DATA)
    writer.close()
    talk.hang_up()


async def reset(talk: Conversation, _: str) -> None:
    talk.say("150 go")
    ((_reader, writer),) = await talk.connections()
    writer.write(DATA[:1000])
    await writer.drain()
    writer.transport.abort()
    talk.say("426 it broke")


async def reset_and_no_word(talk: Conversation, _: str) -> None:
    talk.say("150 go")
    ((_reader, writer),) = await talk.connections()
    sock = writer.get_extra_info("socket")
    sock.setsockopt(1, 13, b"\1\0\0\0\0\0\0\0")  # SO_LINGER: close resets
    writer.close()


@pytest.mark.parametrize(
    ("retr", "error"),
    [
        (sends(DATA[:-1]), TransferAborted),
        (sends(b""), TransferAborted),
        (sends(DATA + b"x"), RecordError),
        (sends(DATA, final="426 broke"), ReplyError),
        (sends(DATA, final="451 broke"), ReplyError),
        (sends(DATA[:1000], final="451 broke"), ReplyError),
        (sends(DATA, final="350 what next?"), PeerError),
        ("226 here you are", PeerError),
        (early_refusal, ReplyError),
        (lost_control, TransferAborted),
        (lost_control_after_all_data, TransferAborted),
        (reset, XftpError),
        (reset_and_no_word, TransferAborted),
    ],
)
async def test_a_plain_download_that_is_not_right_is_no_success(
    tmp_path: Path, retr: Handler, error: type[XftpError]
) -> None:
    async with scripted({**PLAIN, "RETR": retr}) as server, session_with(server) as session:
        with pytest.raises(error):
            await session.get("x", tmp_path / "a")
    assert DATA.startswith(kept(tmp_path))


BEYOND = (7).to_bytes(4, "big") + b"x" * 8192


@pytest.mark.parametrize(
    ("wires", "final"),
    [
        ((records(DATA, [0, 1, 2]), records(DATA, [3, 5, 6])), "226 done"),
        ((records(DATA, [0, 1, 2]), records(DATA, [3, 4, 5])), "226 done"),
        ((records(DATA, [0, 1, 2]), records(DATA, [3, 4, 5, 6])[:-1]), "226 done"),
        ((records(DATA, [0, 1, 2]), b"\0\0"), "226 done"),
        ((records(DATA, [0, 1, 2]), BEYOND), "226 done"),
        ((b"", b""), "226 done"),
        ((records(DATA, [0, 1, 2]), records(DATA, [3, 4, 5, 6])), "451 broke"),
        ((records(DATA, [0, 1, 2]), records(DATA, [3, 4])), "451 broke"),
    ],
)
async def test_a_striped_download_that_is_not_right_is_no_success(
    tmp_path: Path, wires: tuple[bytes, bytes], final: str
) -> None:
    script: dict[str, Handler] = {**STRIPED, "RETR": sends_records(*wires, final=final)}
    async with scripted(script) as server, session_with(server, connections=2) as session:
        with pytest.raises(XftpError):
            await session.get("x", tmp_path / "a")
    assert not (tmp_path / "a").exists()


async def test_what_is_kept_of_a_striped_download_is_right(tmp_path: Path) -> None:
    cut = sends_records(records(DATA, [0, 1, 4]), records(DATA, [2, 6]))
    rest = DATA[3 * 8192 :]

    async def retr(talk: Conversation, argument: str) -> None:
        if "REST 24576" in talk.server.heard:
            wires = records(rest, [0, 2]), records(rest, [1, 3])
            await sends_records(*wires)(talk, argument)  # type: ignore[operator]
        else:
            await cut(talk, argument)  # type: ignore[operator]

    script: dict[str, Handler] = {**STRIPED, "RETR": retr, "REST": "350 go on"}
    async with scripted(script) as server, session_with(server, connections=2) as session:
        with pytest.raises(TransferAborted):
            await session.get("x", tmp_path / "a")
        await session.get("x", tmp_path / "a", existing="resume")
    assert (tmp_path / "a").read_bytes() == DATA
    assert names(tmp_path) == ["a"]


async def test_the_same_record_twice_is_fine(tmp_path: Path) -> None:
    wires = records(DATA, [0, 1, 2, 3, 6]), records(DATA, [3, 2, 4, 5, 6])
    script: dict[str, Handler] = {**STRIPED, "RETR": sends_records(*wires)}
    async with scripted(script) as server, session_with(server, connections=2) as session:
        await session.get("x", tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == DATA


@pytest.mark.parametrize("data", [b"", b"x", DATA[:8192], DATA[:16384], DATA])
async def test_a_server_that_tells_no_size(tmp_path: Path, data: bytes) -> None:
    numbers = range(-(-len(data) // 8192))
    wires = records(data, [*numbers[::2]]), records(data, [*numbers[1::2]])
    for script in (
        {"EPSV": epsv, "RETR": sends(data)},
        {"EPSV": epsv, "RETR": sends(data, opening=f"150 go ({len(data)} bytes)")},
        {"MULT": "200 ok", "MPSV": mpsv(2), "RETR": sends_records(*wires)},
    ):
        async with scripted(script) as server, session_with(server, connections=2) as session:
            await session.get("x", tmp_path / "a", existing="overwrite")
        assert (tmp_path / "a").read_bytes() == data


async def test_the_size_in_the_150_reply_is_held_to(tmp_path: Path) -> None:
    retr = sends(DATA[:-1], opening=f"150 go ({len(DATA)} bytes)")
    script: dict[str, Handler] = {"EPSV": epsv, "RETR": retr}
    async with scripted(script) as server, session_with(server) as session:
        with pytest.raises(TransferAborted):
            await session.get("x", tmp_path / "a")


async def test_a_server_that_never_says_226_is_left(tmp_path: Path) -> None:
    async def retr(talk: Conversation, argument: str) -> None:
        talk.say("150 go")
        ((_reader, writer),) = await talk.connections()
        writer.write(DATA)
        writer.close()

    async with (
        scripted({**PLAIN, "RETR": retr}) as server,
        session_with(server, reply_timeout_s=0.3) as session,
    ):
        with pytest.raises(TransferAborted, match="did not answer RETR"):
            await session.get("x", tmp_path / "a")
        assert session.is_closed
    assert kept(tmp_path) == DATA


async def test_endless_listings_and_data_are_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("xftp.client.streams.MAX_LISTING_BYTES", 10_000)

    async def endless(talk: Conversation, _: str) -> None:
        talk.say("150 go")
        ((_reader, writer),) = await talk.connections()
        try:
            while True:
                writer.write(b"x" * 10_000)
                await writer.drain()
        except ConnectionError:
            talk.say("426 oh")

    script: dict[str, Handler] = {**PLAIN, "LIST": endless, "RETR": endless, "NOOP": "200 yes"}
    async with scripted(script) as server, session_with(server) as session:
        with pytest.raises(PeerError, match="endless listing"):
            await session.list()
        with pytest.raises(RecordError, match="more than"):
            await session.get("x", tmp_path / "a")
        await session.noop()


async def test_an_upload_that_is_refused_half_way_says_why(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 30_000_000)

    async def full(talk: Conversation, _: str) -> None:
        talk.say("150 go")
        ((reader, writer),) = await talk.connections()
        await reader.read(1000)
        talk.say("452 disk full")
        writer.transport.abort()

    script: dict[str, Handler] = {"EPSV": epsv, "STOR": full, "NOOP": "200 yes"}
    async with scripted(script) as server, session_with(server) as session:
        with pytest.raises(ReplyError, match="452 disk full"):
            await session.put(tmp_path / "a", "x", existing="overwrite")
        await session.noop()


async def test_an_upload_whose_connection_breaks_first_says_why_too(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 30_000_000)

    async def full(talk: Conversation, _: str) -> None:
        talk.say("150 go")
        ((reader, writer),) = await talk.connections()
        await reader.read(1000)
        writer.transport.abort()
        await talk.server.script["wait"](talk, "")  # type: ignore[operator]
        talk.say("452 disk full")

    broken: list[str] = []

    async def wait(talk: Conversation, _: str) -> None:
        while not broken:
            await talk.writer.drain()
            broken.append("yes")

    script: dict[str, Handler] = {"EPSV": epsv, "STOR": full, "wait": wait}
    async with scripted(script) as server, session_with(server) as session:
        with pytest.raises(ReplyError, match="452 disk full"):
            await session.put(tmp_path / "a", "x", existing="overwrite")


@pytest.mark.parametrize("reply", ["550 no", "553 no", "530 no", "450 busy", "226 done", "501 no"])
async def test_a_refused_upload_is_no_success(tmp_path: Path, reply: str) -> None:
    (tmp_path / "a").write_bytes(DATA)
    async with scripted({"EPSV": epsv, "STOR": reply}) as server, session_with(server) as session:
        with pytest.raises((ReplyError, PeerError)):
            await session.put(tmp_path / "a", "x", existing="overwrite")
        assert not session.is_closed
