"""What an account may keep: bytes and entries, whatever way they come."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support import RawClient
from xftp.protocol.records import CHUNK_BYTES, RECORD_BYTES
from xftp.server import Account, Server, Settings
from xftp.server import storage as storage_module
from xftp.server.filesystem import Filesystem
from xftp.server.permissions import ALL
from xftp.server.storage import Storage, StorageLimit, Usage

from .support import HOST, codes, names, outcome, pattern, plain, upload, upload_records

LIMIT = StorageLimit(100_000, 8)


def account(root: Path, limit: StorageLimit | None = LIMIT, name: str = "ann") -> Account:
    return Account(name, root, "secret", granted=ALL, storage_limit=limit)


@pytest.fixture
async def server(root: Path) -> AsyncIterator[Server]:
    server = Server(Settings((account(root), account(root, None, "bob")), stall_timeout_s=5.0))
    await server.start(HOST, 0)
    yield server
    await server.close()


@pytest.fixture
async def client(server: Server) -> AsyncIterator[RawClient]:
    client = await session(server)
    yield client
    await client.close()


async def session(server: Server, name: str = "ann") -> RawClient:
    client = await RawClient.connect(HOST, server.server_port)
    await client.log_in(name, "secret")
    assert (await client.command("TYPE I")).code == 200
    return client


async def code(client: RawClient, line: str) -> int:
    return (await client.command(line)).code


def kept_bytes(root: Path) -> int:
    return sum(path.stat().st_size for path in root.rglob("*") if path.is_file())


# -- bytes -------------------------------------------------------------------------------------


async def test_uploads_up_to_the_limit(root: Path, client: RawClient) -> None:
    assert await upload(client, "STOR one", bytes(60_000)) == [150, 226]
    assert await upload(client, "STOR two", bytes(40_000)) == [150, 226]
    assert (await upload(client, "STOR three", b"x"))[-1] == 552
    assert kept_bytes(root) == 100_000


async def test_an_upload_that_is_too_large_ends_at_the_limit(root: Path, client: RawClient) -> None:
    assert (await upload(client, "STOR one", bytes(5_000_000)))[-1] == 552
    assert kept_bytes(root) <= 100_000
    assert not (root / "one").exists()
    assert await code(client, "DELE one") in (250, 550)  # what was kept of it, if anything was
    assert await upload(client, "STOR one", bytes(100_000)) == [150, 226]


@pytest.mark.parametrize("command", ["STOR one", "APPE one"])
async def test_what_is_announced_is_refused_at_once(
    root: Path, client: RawClient, command: str
) -> None:
    (root / "one").write_bytes(bytes(60_000))
    announced = 100_001 if command == "STOR one" else 40_001
    assert await code(client, f"ALLO {announced}") == 200
    data = await plain(client)
    client.send(command)
    assert await codes(client, 1) == [552]
    await data.close()
    assert kept_bytes(root) == 60_000


async def test_records_too(root: Path, client: RawClient) -> None:
    content = pattern(20 * CHUNK_BYTES)
    chunks = [content[at : at + CHUNK_BYTES] for at in range(0, len(content), CHUNK_BYTES)]
    wire = b"".join(number.to_bytes(4, "big") + chunk for number, chunk in enumerate(chunks))
    streams = [wire[: 10 * RECORD_BYTES], wire[10 * RECORD_BYTES :]]
    assert (await upload_records(client, "STOR one", streams))[-1] == 552
    assert kept_bytes(root) <= LIMIT.bytes  # type: ignore[operator]
    fitting = [wire[: 6 * RECORD_BYTES], wire[6 * RECORD_BYTES : 12 * RECORD_BYTES]]
    assert await code(client, "DELE one") == 250
    assert await upload_records(client, "STOR one", fitting, size=12 * CHUNK_BYTES) == [150, 226]
    assert (root / "one").read_bytes() == content[: 12 * CHUNK_BYTES]


async def test_a_file_can_be_replaced_however_full_it_is(root: Path, client: RawClient) -> None:
    assert await upload(client, "STOR one", bytes(100_000)) == [150, 226]
    assert await upload(client, "STOR one", b"x" * 100_000) == [150, 226]
    assert await code(client, "RANG 10 19") == 350
    assert await upload(client, "STOR one", b"y" * 10) == [150, 226]
    assert (await upload(client, "APPE one", b"x"))[-1] == 552
    assert (root / "one").read_bytes() == b"x" * 10 + b"y" * 10 + b"x" * 99_980
    assert kept_bytes(root) == 100_000


async def test_many_at_once_have_no_more_room_than_one(root: Path, server: Server) -> None:
    clients = [await session(server) for _ in range(4)]
    said = await asyncio.gather(
        *(upload(each, f"STOR file{number}", bytes(50_000)) for number, each in enumerate(clients))
    )
    assert [each[-1] for each in said].count(226) <= 2
    assert kept_bytes(root) <= 100_000
    for each in clients:
        await each.close()


async def test_a_cut_upload_over_a_file_is_not_kept_beside_it(
    root: Path, client: RawClient
) -> None:
    (root / "one").write_bytes(bytes(90_000))
    assert await code(client, "ALLO 95000") == 200
    data = await plain(client)
    client.send("STOR one")
    await data.finish(bytes(50_000))
    assert await outcome(client) == [150, 426]
    assert names(root) == ["one"]
    assert (root / "one").stat().st_size == 90_000


async def test_what_is_deleted_or_replaced_makes_room(root: Path, client: RawClient) -> None:
    for name in ("one", "two"):
        assert await upload(client, f"STOR {name}", bytes(50_000)) == [150, 226]
    assert await code(client, "DELE one") == 250
    assert await upload(client, "STOR three", bytes(50_000)) == [150, 226]
    assert await code(client, "RNFR two") == 350
    assert await code(client, "RNTO three") == 250
    assert await upload(client, "STOR four", bytes(50_000)) == [150, 226]
    assert (await upload(client, "STOR five", b"x"))[-1] == 552


async def test_a_series(root: Path, client: RawClient) -> None:
    for number in range(3):
        assert await code(client, f"SERI STOR Size=40000; file{number}") == 250
    content = pattern(120_000)
    chunks = [content[at : at + CHUNK_BYTES] for at in range(0, len(content), CHUNK_BYTES)]
    wire = b"".join(number.to_bytes(4, "big") + chunk for number, chunk in enumerate(chunks))
    assert await upload_records(client, "MSTR", [wire]) == [150, 226]
    assert names(root) == ["file0", "file1"]
    assert kept_bytes(root) == 80_000


# -- entries -----------------------------------------------------------------------------------


async def test_files_and_directories(root: Path, client: RawClient) -> None:
    for number in range(4):
        assert await code(client, f"MKD dir{number}") == 257
        assert await upload(client, f"STOR dir{number}/file", b"") == [150, 226]
    assert await code(client, "MKD another") == 552
    assert (await upload(client, "STOR another", b""))[-1] == 552
    assert await upload(client, "STOR dir1/file", b"x") == [150, 226]
    assert await code(client, "DELE dir1/file") == 250
    assert await code(client, "RMD dir1") == 250
    assert await code(client, "MKD another") == 257
    assert await code(client, "RNFR another") == 350
    assert await code(client, "RNTO renamed") == 250
    assert await upload(client, "STOR file", b"x") == [150, 226]
    assert await code(client, "MKD more") == 552


# -- counting ----------------------------------------------------------------------------------


async def test_what_was_there_counts_and_others_are_not_bound(
    root: Path, server: Server, client: RawClient
) -> None:
    (root / "deep" / "er").mkdir(parents=True)
    (root / "deep" / "er" / "file").write_bytes(bytes(99_000))
    (root / "deep" / "out").symlink_to("/usr")  # is an entry, and not followed
    assert (await upload(client, "STOR one", bytes(2_000)))[-1] == 552
    bob = await session(server, "bob")
    assert await upload(bob, "STOR bobs", bytes(200_000)) == [150, 226]
    await bob.close()


async def test_changes_of_others_are_seen_in_time(
    root: Path, client: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await upload(client, "STOR one", bytes(90_000)) == [150, 226]
    os.truncate(root / "one", 0)
    assert (await upload(client, "STOR two", bytes(20_000)))[-1] == 552
    monkeypatch.setattr(storage_module, "COUNTED_AGAIN_S", 0.0)
    assert await upload(client, "STOR two", bytes(20_000)) == [150, 226]


async def test_a_new_limit_holds_at_once(root: Path, server: Server, client: RawClient) -> None:
    assert await upload(client, "STOR one", bytes(90_000)) == [150, 226]
    server.reload([account(root, StorageLimit(10_000))])
    assert (await upload(client, "STOR two", b"x"))[-1] == 552
    server.reload([account(root, None)])
    assert await upload(client, "STOR two", bytes(200_000)) == [150, 226]


def test_counting_ends_where_there_is_too_much(root: Path) -> None:
    """Who has filled a home with empty files waits for himself, and not for long."""
    for number in range(2_000):
        (root / str(number)).touch()
    files, usage = Filesystem(root, Storage()), Usage()
    try:
        began_s = time.process_time()
        usage.count_again(files._root, 100)
        assert time.process_time() - began_s < 0.5
        assert usage.amount.entries > 100
    finally:
        files.close()
