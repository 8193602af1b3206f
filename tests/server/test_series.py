"""Series on the wire: SERI, MRTR, MSTR (docs/protocol.md, Series)."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support import RawClient, raw_session, running_server
from xftp.protocol.replies import Reply
from xftp.server import Account
from xftp.server.storage import StorageLimit
from xftp.server.watch import FinishedTransfer

from .support import Data, assembled, dealt, multiple, names, outcome, pattern, until

FILES = {"a": pattern(20_000), "empty": b"", "b c": b"short", "d": pattern(8192)}


def sha(content: bytes) -> str:
    return f"SHA-256:{hashlib.sha256(content).hexdigest()}"


@pytest.fixture
async def client(root: Path) -> AsyncIterator[RawClient]:
    for name, content in FILES.items():
        (root / name).write_bytes(content)
    async with running_server(root) as server, raw_session(server) as client:
        assert (await client.command("TYPE I")).code == 200
        yield client


async def final(client: RawClient) -> Reply:
    """Give the first final reply."""
    while (reply := await client.reply()).is_preliminary:
        pass
    return reply


async def test_feat_tells(client: RawClient) -> None:
    assert "SERI RETR;STOR" in (await client.command("FEAT")).lines


@pytest.mark.parametrize("count", [1, 3])
async def test_down(client: RawClient, count: int) -> None:
    connections = await multiple(client, count)
    for name, content in FILES.items():
        reply = await client.command(f"SERI RETR Hash=SHA-256; {name}")
        assert reply.code == 250
        assert f"Size={len(content)};" in reply.text
        assert f"Hash={sha(content)};" in reply.text
    whole = b"".join(FILES.values())
    assert "(28197 bytes)" in (await client.command("MRTR")).text
    streams = await asyncio.gather(*map(Data.read, connections))
    assert assembled(streams, len(whole)) == whole
    assert (await final(client)).code == 226


@pytest.mark.parametrize("count", [1, 3])
async def test_up(client: RawClient, root: Path, count: int) -> None:
    connections = await multiple(client, count)
    for name, content in FILES.items():
        facts = f"Size={len(content)};Modify=20010203040506;Hash={sha(content)};"
        assert (await client.command(f"SERI STOR {facts} new {name}")).code == 250
    client.send("MSTR")
    streams = dealt(b"".join(FILES.values()), count)
    await asyncio.gather(*map(Data.finish, connections, streams))
    assert await outcome(client) == [150, 226]
    for name, content in FILES.items():
        assert (root / f"new {name}").read_bytes() == content
        assert (root / f"new {name}").stat().st_mtime == 981173106


async def test_what_is_refused_is_not_in_it(client: RawClient) -> None:
    (data,) = await multiple(client, 1)
    assert (await client.command("SERI RETR  missing")).code == 550
    assert (await client.command("SERI RETR  b c")).code == 250
    client.send("MRTR")
    assert assembled([await data.read()], 5) == b"short"
    assert await outcome(client) == [150, 226]


async def test_a_wrong_hash_and_a_place_that_is_taken(client: RawClient, root: Path) -> None:
    (root / "taken").mkdir()
    (data,) = await multiple(client, 1)
    for line in (
        f"Size=3;Hash={sha(b'one')}; one",
        "Size=3; taken",
        f"Size=3;Hash={sha(b'two')}; two",
    ):
        assert (await client.command(f"SERI STOR {line}")).code == 250
    client.send("MSTR")
    await data.finish(dealt(b"onX...two", 1)[0])
    reply = await final(client)
    assert reply.code == 226
    assert [line.split(" ")[:2] for line in reply.lines[1:-1]] == [["0", "451"], ["1", "550"]]
    assert (root / "two").read_bytes() == b"two"
    assert sorted({*names(root)} - {*FILES}) == ["taken", "two"]


async def test_a_cut_series_leaves_what_was_complete(client: RawClient, root: Path) -> None:
    (data,) = await multiple(client, 1)
    for name in ("first", "second"):
        assert (await client.command(f"SERI STOR Size=10000; {name}")).code == 250
    client.send("MSTR")
    await data.finish(dealt(pattern(20_000), 1)[0][: 2 * 8196])
    assert await outcome(client) == [150, 426]
    assert (root / "first").read_bytes() == pattern(20_000)[:10_000]
    assert sorted({*names(root)} - {*FILES}) == ["first"]


async def test_a_file_that_vanished(client: RawClient, root: Path) -> None:
    """Its hash was told, so that zeros are seen to be wrong; the others are whole."""
    (data,) = await multiple(client, 1)
    for name in ("b c", "d"):
        assert (await client.command(f"SERI RETR Hash=MD5; {name}")).code == 250
    (root / "b c").unlink()
    client.send("MRTR")
    assert assembled([await data.read()], 5 + 8192) == bytes(5) + FILES["d"]
    assert await outcome(client) == [150, 226]


async def test_a_file_that_vanished_without_a_hash(client: RawClient, root: Path) -> None:
    await multiple(client, 1)
    assert (await client.command("SERI RETR  b c")).code == 250
    (root / "b c").unlink()
    client.send("MRTR")
    assert (await outcome(client))[-1] in (426, 450, 451, 550)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("SERI RETR Hash=SHA-999; a", 504),
        ("SERI STOR Size=67108865; a", 552),
        ("SERI STOR Size=1;Size=1; a", 501),
        ("MRTR", 425),
        ("MSTR", 425),
    ],
)
async def test_refusals(client: RawClient, line: str, code: int) -> None:
    assert (await client.command(line)).code == code


async def test_a_series_is_over_with_a_transfer_that_was_refused(client: RawClient) -> None:
    assert (await client.command("SERI RETR  a")).code == 250
    assert (await client.command("MRTR")).code == 425
    await multiple(client, 1)
    assert (await client.command("MRTR")).code == 503


async def test_the_first_file_has_no_place(client: RawClient, root: Path) -> None:
    """The others are stored, as with any file that cannot be."""
    (data,) = await multiple(client, 1)
    for line in ("Size=3; no/such/place", "Size=3; two"):
        assert (await client.command(f"SERI STOR {line}")).code == 250
    client.send("MSTR")
    await data.finish(dealt(b"onetwo", 1)[0])
    reply = await final(client)
    assert reply.code == 226
    assert [line.split(" ")[:2] for line in reply.lines[1:-1]] == [["0", "550"]]
    assert (root / "two").read_bytes() == b"two"


async def test_an_account_that_is_full(root: Path) -> None:
    (root / "old").write_bytes(b"old")
    full = Account("anonymous", root, writable=True, storage_limit=StorageLimit(entries=1))
    everyone = running_server(root, accounts=(full,))
    async with everyone as server, raw_session(server) as client:
        await client.command("TYPE I")
        await multiple(client, 1)
        assert (await client.command("SERI STOR Size=3; new")).code == 250
        assert (await client.command("MSTR")).code == 552
    assert names(root) == ["old"]


async def test_a_series_is_over_with_its_transfer(client: RawClient) -> None:
    assert (await client.command("SERI RETR  a")).code == 250
    assert (await client.command("SERI STOR Size=1; x")).code == 503
    await multiple(client, 1)
    assert (await client.command("MSTR")).code == 503
    await multiple(client, 1)
    assert (await client.command("MRTR")).code == 503


async def test_nothing_outside_the_root(client: RawClient, root: Path) -> None:
    (root.parent / "secret").write_text("secret")
    assert (await client.command("SERI RETR  ../secret")).code == 550
    (root / "link").symlink_to("../secret")
    assert (await client.command("SERI RETR  link")).code == 550


async def test_who_may_only_read(root: Path) -> None:
    (root / "a").write_bytes(b"a")
    async with running_server(root, writable=False) as server, raw_session(server) as client:
        assert (await client.command("SERI STOR Size=1; b")).code == 550
        assert (await client.command("SERI RETR  a")).code == 250


async def test_each_file_is_told_to_the_operator(root: Path) -> None:
    (root / "a").write_bytes(b"abc")
    async with running_server(root) as server, raw_session(server) as client:
        seen: list[FinishedTransfer] = []
        server.shared.watch.listeners.append(seen.append)
        (data,) = await multiple(client, 1)
        await client.command("TYPE I")
        await client.command("SERI RETR  a")
        client.send("MRTR")
        await data.read()
        await outcome(client)
        assert told(seen) == [("/a", 3, None)]


def told(seen: list[FinishedTransfer]) -> list[tuple[str, int, str | None]]:
    return [(each.path, each.bytes, each.error) for each in seen]


@pytest.mark.parametrize("ending", ["ABOR", "gone"])
async def test_a_series_that_is_cut_is_told_to_the_operator(root: Path, ending: str) -> None:
    """What was sent must not go by unseen, however it ended."""
    size = 20_000_000  # more than the sockets take
    for name in ("a", "b"):
        (root / name).write_bytes(bytes(size))
    seen: list[FinishedTransfer] = []
    async with running_server(root) as server:
        server.shared.watch.listeners.append(seen.append)
        async with raw_session(server) as client:
            await client.command("TYPE I")
            (data,) = await multiple(client, 1)
            for name in ("a", "b"):
                await client.command(f"SERI RETR  {name}")
            client.send("MRTR")
            await data.reader.readexactly(1_000_000)
            if ending == "ABOR":
                client.send("ABOR")
                assert await outcome(client) == [150, 426]
        await until(lambda: len(seen) == 2)
    assert [(each.path, each.error) for each in seen] == [("/a", "aborted"), ("/b", "aborted")]
    assert seen[0].bytes > 900_000
    assert seen[1].bytes == 0
