"""What uploads send, and what they do with what is there."""

import asyncio
import contextlib
import os
from pathlib import Path

import pytest

from xftp.client.existing import ExistsError
from xftp.errors import ArgumentError, FileError, ReplyError, XftpError

from .scripted import (
    Conversation,
    Handler,
    epsv,
    mpsv,
    receives,
    scripted,
    session_with,
)
from .test_download import Watch

DATA = os.urandom(50_000)


def fill(path: Path, data: bytes) -> None:
    path.write_bytes(data)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "a"
    path.write_bytes(DATA)
    os.utime(path, (1577836800, 1577836800))
    return path


@pytest.mark.parametrize(
    ("remote", "expected"), [(None, "a"), ("", "a"), ("dir/", "dir/a"), ("b", "b"), ("/", "/a")]
)
async def test_the_name_on_the_server(source: Path, remote: str | None, expected: str) -> None:
    got: list[bytes] = []
    script: dict[str, Handler] = {"EPSV": epsv, "STOR": receives(got), "SIZE": "550 none"}
    async with scripted(script) as server, session_with(server) as session:
        await session.put(source, remote)
        assert server.heard[-1] == f"STOR {expected}"
    assert got == [DATA]


@pytest.mark.parametrize(
    ("script", "exists"),
    [
        ({"SIZE": "213 5"}, True),
        ({"SIZE": "550 none"}, False),
        ({"SIZE": "502 what?", "MLST": "250-\r\n type=file; a\r\n250 end"}, True),
        ({"SIZE": "502 what?", "MLST": "550 none"}, False),
        ({"SIZE": "502 what?", "MLST": "502 what?"}, False),
    ],
)
async def test_what_exists_is_left_unless_told_otherwise(
    source: Path, script: dict[str, Handler], exists: bool
) -> None:
    got: list[bytes] = []
    script = {"EPSV": epsv, "STOR": receives(got), **script}
    async with scripted(script) as server, session_with(server) as session:
        if exists:
            with pytest.raises(ExistsError):
                await session.put(source)
            assert await session.put(source, existing="skip") is None
            with pytest.raises(ExistsError):
                await session.put_stream(lambda: b"", "a", existing="fail")
            assert got == []
        else:
            await session.put(source)
            assert got == [DATA]
        await session.put(source, existing="overwrite")
    assert got[-1] == DATA


async def test_an_upload_goes_on_from_what_is_there(source: Path) -> None:
    got: list[bytes] = []
    script: dict[str, Handler] = {
        "EPSV": epsv,
        "SIZE": "213 20000",
        "REST": "350 go on",
        "STOR": receives(got),
    }
    watch = Watch()
    async with scripted(script) as server, session_with(server) as session:
        report = await session.put(source, existing="resume", progress=watch)
        assert report is not None
        assert (report.offset, report.bytes) == (20_000, 30_000)
        assert server.heard[-4:] == [f"ALLO {len(DATA)}", "EPSV", "REST 20000", "STOR a"]
        assert got == [DATA[20_000:]]
        assert watch.begins == [(len(DATA), 20_000)]
        server.script["SIZE"] = f"213 {len(DATA)}"
        assert await session.put(source, existing="resume") is None
        server.script["SIZE"] = f"213 {len(DATA) + 1}"
        with pytest.raises(FileError, match="fewer than"):
            await session.put(source, existing="resume")
        server.script["SIZE"] = "550 none"
        await session.put(source, existing="resume")
        assert got[-1] == DATA
        fill(source, b"")
        await session.put(source, existing="resume")
        assert got[-1] == b""


async def test_a_server_that_does_not_restart_gets_all(source: Path) -> None:
    got: list[bytes] = []
    script: dict[str, Handler] = {
        "EPSV": epsv,
        "SIZE": "213 20000",
        "REST": "502 no",
        "STOR": receives(got),
    }
    notices: list[str] = []
    async with (
        scripted(script) as server,
        session_with(server, notice=notices.append) as session,
    ):
        await session.put(source, existing="resume")
    assert got == [DATA]
    assert len(notices) == 1


async def test_records_are_sent_over_all_connections(source: Path) -> None:
    got: list[bytes] = []

    async def stor(talk: Conversation, _: str) -> None:
        talk.say("150 go")
        streams = await talk.connections(3)
        got.extend(await asyncio.gather(*(reader.read() for reader, _writer in streams)))
        for _reader, writer in streams:
            writer.close()
        talk.say("226 done")

    script: dict[str, Handler] = {"MULT": "200 ok", "MPSV": mpsv(3), "STOR": stor}
    async with scripted(script) as server, session_with(server, connections=3) as session:
        report = await session.put(source, existing="overwrite")
    assert report is not None
    assert len(report.connections) == 3
    chunks = {}
    for wire in got:
        while wire:
            chunks[int.from_bytes(wire[:4], "big")] = wire[4:8196]
            wire = wire[8196:]
    assert b"".join(chunks[number] for number in sorted(chunks)) == DATA


async def test_the_time_is_sent_where_the_server_takes_it(source: Path) -> None:
    script: dict[str, Handler] = {
        "FEAT": "211-\r\n MFMT\r\n SIZE\r\n211 end",
        "EPSV": epsv,
        "STOR": receives([]),
        "MFMT": "213 Modify=20200101000000; a",
    }
    async with scripted(script) as server, session_with(server) as session:
        await session.put(source, existing="overwrite")
        assert server.heard[-1] == "MFMT 20200101000000 a"
        await session.put(source, existing="overwrite", preserve_times=False)
        assert server.heard[-1] == "STOR a"
        server.script["MFMT"] = "550 no"
        assert await session.put(source, existing="overwrite") is not None


@pytest.mark.parametrize("reply", ["552 too large", "452 no room"])
async def test_no_room_is_known_before_anything_moves(source: Path, reply: str) -> None:
    async with (
        scripted({"EPSV": epsv, "ALLO": reply}) as server,
        session_with(server) as session,
    ):
        with pytest.raises(ReplyError, match=reply):
            await session.put(source, existing="overwrite")
        assert "STOR" not in server.verbs()


@pytest.mark.parametrize("reply", ["200 ok", "202 no need", "500 what?", "504 no", "501 huh"])
async def test_other_answers_to_allo_do_not_matter(source: Path, reply: str) -> None:
    got: list[bytes] = []
    script: dict[str, Handler] = {"EPSV": epsv, "ALLO": reply, "STOR": receives(got)}
    async with scripted(script) as server, session_with(server) as session:
        await session.put(source, existing="overwrite")
    assert got == [DATA]


@pytest.mark.parametrize("local", ["missing", "."])
async def test_what_cannot_be_read_is_a_file_error(tmp_path: Path, local: str) -> None:
    async with scripted() as server, session_with(server) as session:
        before = len(server.heard)
        with pytest.raises(FileError):
            await session.put(tmp_path / local, "x")
        with pytest.raises(ArgumentError):
            await session.put(tmp_path / local, "x\r\nDELE y")
        assert len(server.heard) == before


async def test_a_pipe_is_sent_as_a_stream(tmp_path: Path) -> None:
    got: list[bytes] = []
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    holder = os.open(pipe, os.O_RDWR)
    os.write(holder, b"through a pipe")

    async def stor(talk: Conversation, _: str) -> None:
        talk.say("150 go")
        ((reader, writer),) = await talk.connections()
        got.append(await reader.readexactly(14))
        os.close(holder)
        got.append(await reader.read())
        writer.close()
        talk.say("226 done")

    async with scripted({"EPSV": epsv, "STOR": stor}) as server, session_with(server) as session:
        await session.put(pipe, "x", existing="overwrite")
    assert b"".join(got) == b"through a pipe"


async def test_a_cancelled_upload_is_never_ended_politely(source: Path) -> None:
    fill(source, b"x" * 30_000_000)
    seen: list[str] = []

    async def stor(talk: Conversation, _: str) -> None:
        talk.say("150 go")
        ((reader, writer),) = await talk.connections()
        begun.set()
        try:
            while await reader.read(1000):
                pass
            seen.append("a polite end")
        except ConnectionResetError:
            seen.append("a reset")
        writer.close()
        talk.say("426 oh")

    begun = asyncio.Event()
    script: dict[str, Handler] = {"EPSV": epsv, "STOR": stor, "NOOP": "200 yes"}
    async with (
        scripted(script) as server,
        session_with(server, limit_rate=100_000.0) as session,
    ):
        task = asyncio.create_task(session.put(source, existing="overwrite"))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await session.noop()
    assert seen == ["a reset"]


async def test_a_file_that_shrinks_is_a_failure(source: Path) -> None:
    fill(source, b"x" * 3_000_000)

    async def stor(talk: Conversation, _: str) -> None:
        fill(source, b"x" * 1000)
        talk.say("150 go")
        ((reader, writer),) = await talk.connections()
        with contextlib.suppress(ConnectionResetError):
            await reader.read()
        writer.close()
        talk.say("226 done, as I see it")

    async with scripted({"EPSV": epsv, "STOR": stor}) as server, session_with(server) as session:
        with pytest.raises(XftpError):
            await session.put(source, existing="overwrite")
