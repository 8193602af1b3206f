"""HASB: the hash of a file while it is downloaded (docs/protocol.md, Hashes)."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support import RawClient, raw_session
from xftp.server import Server
from xftp.server.commands.hashes import hash_file
from xftp.transport.hashing import FileHash

from .support import HOST, codes, dial, extended_port, pattern, until

CONTENT = pattern(100_000)
DIGEST = hashlib.sha256(CONTENT).hexdigest()
LONG_BYTES = 1 << 40


@pytest.fixture
async def session(root: Path, server: Server) -> AsyncIterator[RawClient]:
    (root / "file").write_bytes(CONTENT)
    (root / "other").write_bytes(b"other")
    async with raw_session(server) as client:
        assert (await client.command("TYPE I")).code == 200
        yield client


async def begun(client: RawClient, *commands: str) -> int:
    """Begin a download that waits for its data connection; give the port for it."""
    reply = await client.command("EPSV")
    for command in commands:
        assert (await client.command(command)).code == 350
    assert (await client.command("RETR file")).code == 150
    return extended_port(reply.text)


async def all_is_read(client: RawClient) -> None:
    """Wait until the server has seen every command; STAT is answered before its turn."""
    assert (await client.command("STAT")).code == 211


def is_hashing() -> bool:
    return any(task.get_coro().__name__ == hash_file.__name__ for task in asyncio.all_tasks())


async def test_the_hash_comes_before_the_end_of_the_download(session: RawClient) -> None:
    port = await begun(session)
    reply = await session.command("HASB file")
    assert (reply.code, reply.text) == (213, f"SHA-256 0-99999 {DIGEST} file")
    data = await dial(port)
    assert await data.read() == CONTENT
    assert await codes(session, 1) == [226]
    assert (await session.command("HASB other")).code == 213


async def test_it_may_come_together_with_the_download(session: RawClient) -> None:
    port = extended_port((await session.command("EPSV")).text)
    session.send("RETR file", "HASB file")
    assert await codes(session, 2) == [150, 213]
    assert await (await dial(port)).read() == CONTENT
    assert await codes(session, 1) == [226]


async def test_what_fails_is_told_in_its_turn(session: RawClient) -> None:
    port = await begun(session)
    session.send("HASB missing", "NOOP")
    await all_is_read(session)
    await until(lambda: not is_hashing())
    assert await (await dial(port)).read() == CONTENT
    assert await codes(session, 3) == [226, 550, 200]


@pytest.mark.parametrize(
    ("before", "expected"),
    [("NOOP", [226, 200]), ("OPTS HASH SHA-1", [226, 200]), ("RANG 0 4", [226, 350])],
)
async def test_nothing_that_waits_before_it_is_overtaken(
    session: RawClient, before: str, expected: list[int]
) -> None:
    port = await begun(session)
    session.send(before, "HASB file")
    await all_is_read(session)
    assert await (await dial(port)).read() == CONTENT
    assert await codes(session, 3) == [*expected, 213]


async def test_the_range_of_a_download_is_not_taken_for_its_own(session: RawClient) -> None:
    port = await begun(session, "RANG 10 49")
    session.send("HASB file")
    await all_is_read(session)
    assert await (await dial(port)).read() == CONTENT[10:50]
    assert await codes(session, 1) == [226]
    assert DIGEST in (await session.reply()).text


async def test_not_beside_an_upload(session: RawClient) -> None:
    port = extended_port((await session.command("EPSV")).text)
    assert (await session.command("STOR new")).code == 150
    session.send("HASB new")
    await all_is_read(session)
    await (await dial(port)).finish(b"new")
    assert await codes(session, 1) == [226]
    assert hashlib.sha256(b"new").hexdigest() in (await session.reply()).text


async def test_abor_ends_first_the_download_and_then_the_hash(
    session: RawClient, root: Path
) -> None:
    _long(root / "long")
    await begun(session)
    session.send("HASB long", "ABOR")
    assert await codes(session, 2) == [426, 226]
    session.send("ABOR", "NOOP")
    assert await codes(session, 3) == [426, 226, 200]


async def test_a_session_that_is_lost_ends_it(
    root: Path, server: Server, session: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    _long(root / "long")
    slices: list[int] = []
    advance = FileHash.advance

    def counted(self: FileHash, end: int) -> None:
        slices.append(end)
        advance(self, end)

    monkeypatch.setattr(FileHash, "advance", counted)
    client = await RawClient.connect(HOST, server.server_port)
    await client.log_in()
    assert (await client.command("TYPE I")).code == 200
    await begun(client)
    client.send("HASB long")
    await until(lambda: len(slices) > 1)
    assert is_hashing()
    await client.close()
    await until(lambda: server.session_count == 1)
    assert not is_hashing()


def _long(path: Path) -> None:
    """Make a file without blocks that nobody has hashed by the end of a test."""
    with path.open("wb") as long:
        try:
            long.truncate(LONG_BYTES)
        except OSError:
            pytest.skip("the file system holds no file of a terabyte")
