"""HASH, RANG, OPTS HASH and the X commands of the server."""

from __future__ import annotations

import asyncio
import hashlib
import os
import threading
import zlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support import RawClient, raw_session
from xftp.server import Server
from xftp.server import hashing as worker_module
from xftp.server.hashing import HashWorker
from xftp.transport.hashing import FileHash, algorithms

from .support import (
    HOST,
    assembled,
    codes,
    dial,
    download,
    download_records,
    extended_port,
    names,
    outcome,
    pattern,
    plain,
    until,
    upload,
)

CONTENT = pattern(100_000)
NAMES = ["digits", "empty", "file", "long"]
LONG_BYTES = 1 << 40
"""A file without blocks that nobody has hashed by the end of a test."""


@pytest.fixture
def files(root: Path) -> Path:
    (root / "file").write_bytes(CONTENT)
    (root / "digits").write_bytes(b"123456789")
    (root / "empty").write_bytes(b"")
    with (root / "long").open("wb") as long:
        try:
            long.truncate(LONG_BYTES)
        except OSError:
            pytest.skip("the file system holds no file of a terabyte")
    return root


@pytest.fixture
async def session(files: Path, server: Server) -> AsyncIterator[RawClient]:
    async with raw_session(server) as client:
        assert (await client.command("TYPE I")).code == 200
        yield client


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


# -- HASH --------------------------------------------------------------------------------------


async def test_hash_of_a_file(session: RawClient) -> None:
    reply = await session.command("HASH file")
    assert (reply.code, reply.text) == (213, f"SHA-256 0-99999 {sha256(CONTENT)} file")
    reply = await session.command("HASH empty")
    assert (reply.code, reply.text) == (213, f"SHA-256 0-0 {sha256(b'')} empty")
    await session.command("TYPE A")
    assert sha256(CONTENT) in (await session.command("HASH file")).text


async def test_opts_hash(session: RawClient) -> None:
    assert (await session.command("OPTS HASH")).text == "SHA-256"
    for name, digest in (
        ("SHA-1", hashlib.sha1(b"123456789").hexdigest()),
        ("md5", hashlib.md5(b"123456789").hexdigest()),
        ("CRC32", "cbf43926"),
        ("SHA-512", hashlib.sha512(b"123456789").hexdigest()),
    ):
        reply = await session.command(f"OPTS HASH {name}")
        assert (reply.code, reply.text) == (200, name.upper())
        reply = await session.command("HASH digits")
        assert reply.text == f"{name.upper()} 0-8 {digest} digits"
        assert f"{name.upper()}*" in (await session.command("FEAT")).text
    assert (await session.command("OPTS HASH CRC64")).code == 504
    assert (await session.command("OPTS HASH")).text == "SHA-512"
    session.send("REIN", "USER anonymous", "PASS x", "OPTS HASH")
    assert await codes(session, 3) == [220, 331, 230]
    assert (await session.reply()).text == "SHA-256"


async def test_feat(session: RawClient) -> None:
    lines = [line.strip() for line in (await session.command("FEAT")).lines]
    names = ";".join(f"{name}*" if name == "SHA-256" else name for name in algorithms())
    assert f"HASH {names}" in lines
    assert {"RANG STREAM", "XCRC", "XMD5", "XSHA", "XSHA1", "XSHA256", "XSHA512"} <= set(lines)


@pytest.mark.parametrize(
    ("command", "digest"),
    [
        ("XCRC digits", "CBF43926"),
        ('XCRC "digits"', "CBF43926"),
        ('XCRC "digits" 2', f"{zlib.crc32(b'3456789'):08X}"),
        ('XCRC "digits" 2 5', f"{zlib.crc32(b'345'):08X}"),
        ('XCRC "digits" 2 500', f"{zlib.crc32(b'3456789'):08X}"),
        ("XMD5 digits", "25F9E794323B453885F5181F1B624D0B"),
        ("XSHA digits", "F7C3BC1D808E04732ADF679965CCC34CA7AE3441"),
        ("XSHA1 digits", "F7C3BC1D808E04732ADF679965CCC34CA7AE3441"),
        ("XSHA256 digits", sha256(b"123456789").upper()),
        ("XSHA512 digits", hashlib.sha512(b"123456789").hexdigest().upper()),
    ],
)
async def test_commands_of_before_hash(session: RawClient, command: str, digest: str) -> None:
    reply = await session.command(command)
    assert (reply.code, reply.text) == (250, digest)


# -- RANG --------------------------------------------------------------------------------------


async def test_hash_of_a_range(session: RawClient) -> None:
    assert (await session.command("RANG 10 49")).code == 350
    reply = await session.command("HASH file")
    assert reply.text == f"SHA-256 10-49 {sha256(CONTENT[10:50])} file"
    assert "0-99999" in (await session.command("HASH file")).text  # for one command only
    session.send("RANG 99990 200000", "HASH file", "RANG 5 9", "RANG 1 0", "HASH digits")
    assert (await session.reply()).code == 350
    assert (await session.reply()).text.startswith(f"SHA-256 99990-99999 {sha256(CONTENT[-10:])}")
    assert await codes(session, 2) == [350, 350]
    assert (await session.reply()).text.startswith("SHA-256 0-8 ")
    session.send("RANG 100000 100000", "HASH file", "RANG 5 9", "REST 0", "HASH digits")
    assert await codes(session, 4) == [350, 554, 350, 350]
    assert (await session.reply()).text.startswith("SHA-256 0-8 ")


async def test_retr_of_a_range(session: RawClient) -> None:
    for first, last in ((0, 0), (10, 49), (99_000, 99_999), (99_000, 200_000)):
        assert (await session.command(f"RANG {first} {last}")).code == 350
        assert await download(session, "RETR file") == ([150, 226], CONTENT[first : last + 1])
    assert await download(session, "RETR file") == ([150, 226], CONTENT)


async def test_retr_of_a_range_in_records(session: RawClient) -> None:
    assert (await session.command("RANG 5 50004")).code == 350
    found, streams = await download_records(session, "RETR file", 3)
    assert found == [150, 226]
    assert assembled(streams, 50_000) == CONTENT[5:50_005]


async def test_stor_of_a_range(session: RawClient, files: Path) -> None:
    (files / "file").chmod(0o640)
    assert (await session.command("RANG 10 14")).code == 350
    assert await upload(session, "STOR file", b"ABCDE") == [150, 226]
    assert (files / "file").read_bytes() == CONTENT[:10] + b"ABCDE" + CONTENT[15:]
    assert (files / "file").stat().st_mode & 0o777 == 0o640
    assert await upload(session, "STOR file", b"ABC") == [150, 226]
    assert (files / "file").read_bytes() == b"ABC"
    assert names(files) == NAMES


@pytest.mark.parametrize("content", [b"", b"ABCD", b"ABCDEF"])
async def test_stor_of_another_number_of_bytes_changes_nothing(
    session: RawClient, files: Path, content: bytes
) -> None:
    assert (await session.command("RANG 10 14")).code == 350
    assert (await upload(session, "STOR file", content))[-1] in (426, 451)
    assert (files / "file").read_bytes() == CONTENT
    assert names(files) == NAMES
    assert await upload(session, "STOR new", b"x") == [150, 226]


@pytest.mark.parametrize(
    ("commands", "code"),
    [
        (["RANG 100000 100001", "EPSV", "RETR file"], 554),
        (["RANG 99999 100000", "EPSV", "STOR file"], 554),
        (["RANG 0 1", "EPSV", "STOR new"], 550),
        (["RANG 0 1", "EPSV", "APPE file"], 504),
        (["RANG 0 1", "EPSV", "STOU"], 504),
        (["RANG 0 1", "MPSV", "STOR file"], 504),
        (["TYPE A", "RANG 0 1", "EPSV", "RETR file"], 554),
    ],
)
async def test_ranges_that_are_refused(
    session: RawClient, files: Path, commands: list[str], code: int
) -> None:
    for command in commands[:-1]:
        assert (await session.command(command)).code < 400
    assert (await session.command(commands[-1])).code == code
    assert (files / "file").read_bytes() == CONTENT
    assert names(files) == NAMES


# -- bounds ------------------------------------------------------------------------------------


@pytest.fixture
def slices(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The slices that were begun: where each ends."""
    begun: list[int] = []
    advance = FileHash.advance

    def noted(self: FileHash, end: int) -> None:
        begun.append(end)
        advance(self, end)

    monkeypatch.setattr(FileHash, "advance", noted)
    return begun


@pytest.mark.parametrize("command", ["HASH long", "XMD5 long"])
async def test_abor_ends_a_long_hash(session: RawClient, slices: list[int], command: str) -> None:
    session.send(command)
    await until(lambda: bool(slices))
    session.send("ABOR", "NOOP")
    assert await codes(session, 3) == [426, 226, 200]


async def test_abor_that_came_together_with_the_command(session: RawClient) -> None:
    session.send("HASH long", "ABOR", "HASH digits")
    assert await codes(session, 3) == [426, 226, 213]


async def test_a_session_that_is_lost_ends_its_hash(
    server: Server, session: RawClient, slices: list[int]
) -> None:
    client = await RawClient.connect(HOST, server.server_port)
    await client.log_in()
    client.send("HASH long")
    await until(lambda: len(slices) > 1)
    await client.close()
    await until(lambda: server.session_count == 1)
    seen = len(slices)
    # Turns are taken in order: one that went on would have its next slice before this one.
    assert (await session.command("HASH digits")).code == 213
    assert len(slices) == seen + 1


async def test_close_of_the_server_ends_a_hash(
    files: Path, server: Server, slices: list[int]
) -> None:
    client = await RawClient.connect(HOST, server.server_port)
    await client.log_in()
    client.send("HASH long")
    await until(lambda: bool(slices))
    async with asyncio.timeout(10):
        await server.close()
    await client.close()


async def test_a_long_hash_of_one_keeps_no_other_waiting(
    server: Server, session: RawClient, slices: list[int]
) -> None:
    others = [await RawClient.connect(HOST, server.server_port) for _ in range(3)]
    for other in others:
        await other.log_in()
        other.send("HASH long")
    await until(lambda: len(slices) >= len(others))
    assert (await session.command("HASH digits")).code == 213
    for other in others:
        await other.close()


async def test_no_more_threads_than_half_of_the_processors(
    server: Server, session: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Six sessions ask, and whoever has begun goes on when all of them have."""
    most_threads = max(1, (os.cpu_count() or 1) // 2)
    asked, begun, may_go_on = [], [], threading.Event()
    take_turn, advance = HashWorker._advance, FileHash.advance

    async def counted(self: HashWorker, content: FileHash, end: int) -> None:
        asked.append(end)
        await take_turn(self, content, end)

    def held_up(self: FileHash, end: int) -> None:
        begun.append(end)
        assert may_go_on.wait(20)
        advance(self, end)

    monkeypatch.setattr(HashWorker, "_advance", counted)
    monkeypatch.setattr(FileHash, "advance", held_up)
    others = [await RawClient.connect(HOST, server.server_port) for _ in range(6)]
    for number, other in enumerate(others):
        await other.log_in()
        other.send(f"RANG {number} 50000", "HASH file")
    await until(lambda: len(asked) == len(others) and len(begun) >= min(most_threads, 6))
    assert (await session.command("NOOP")).code == 200
    assert len(begun) <= most_threads
    may_go_on.set()
    for other in others:
        assert await codes(other, 2) == [350, 213]
        await other.close()


async def test_what_was_hashed_is_remembered_until_the_file_changes(
    session: RawClient, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_module, "_SETTLED_S", 0.0)
    first = await session.command("HASH file")

    def never(self: FileHash, end: int) -> None:
        raise AssertionError("hashed again")

    with monkeypatch.context() as patched:
        patched.setattr(FileHash, "advance", never)
        assert await session.command("HASH file") == first
        assert (await session.command("XSHA256 file")).text == sha256(CONTENT).upper()
    with (files / "file").open("r+b") as file:
        file.write(b"x")
    assert sha256(b"x" + CONTENT[1:]) in (await session.command("HASH file")).text


async def test_a_file_that_has_just_changed_is_not_remembered(
    session: RawClient, files: Path
) -> None:
    """Within the grain of the time stamps it may change again unseen."""
    status = (files / "file").stat()
    for byte in (b"a", b"b", b"c"):
        with (files / "file").open("r+b") as file:
            file.write(byte)
        os.utime(files / "file", ns=(status.st_atime_ns, status.st_mtime_ns))
        assert sha256(byte + CONTENT[1:]) in (await session.command("HASH file")).text


async def test_a_file_that_changes_meanwhile_has_no_hash(
    session: RawClient, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    advance = FileHash.advance

    def changing(self: FileHash, end: int) -> None:
        advance(self, end)
        with (files / "file").open("ab") as file:
            file.write(b"more")

    monkeypatch.setattr(FileHash, "advance", changing)
    assert (await session.command("HASH file")).code == 450


async def test_a_transfer_goes_on_beside_a_hash(server: Server, session: RawClient) -> None:
    async with raw_session(server) as hashing:
        hashing.send("HASH long")
        data = await plain(session)
        session.send("RETR file")
        assert len(await data.read()) in (len(CONTENT), CONTENT.count(b"\n") + len(CONTENT))
        assert await outcome(session) == [150, 226]
        assert extended_port((await session.command("EPSV")).text)
        hashing.send("ABOR")
        assert await codes(hashing, 2) == [426, 226]


async def test_hash_leaves_a_data_connection_that_waits(session: RawClient) -> None:
    port = extended_port((await session.command("EPSV")).text)
    assert (await session.command("HASH digits")).code == 213
    data = await dial(port)
    session.send("RETR digits")
    assert await data.read() == b"123456789"
    assert await outcome(session) == [150, 226]
