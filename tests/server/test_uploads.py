"""What becomes of a file that is uploaded: whole or not there, and what is kept of a cut one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support import RawClient, raw_session, running_server
from xftp.server import Server

from .support import (
    CHUNK,
    codes,
    dealt,
    download,
    has_moved,
    multiple,
    names,
    pattern,
    plain,
    records,
    upload,
    upload_records,
)

CONTENT = pattern(10 * CHUNK + 5)


async def cut(client: RawClient, command: str, content: bytes) -> None:
    """Upload, and reset the data connection once everything has arrived."""
    data = await plain(client)
    client.send(command)
    assert await codes(client, 1) == [150]
    await data.send(content)
    await has_moved(client, len(content))
    await data.reset()
    assert await codes(client, 1) == [426]


async def size(client: RawClient, name: str) -> str:
    """Give what SIZE and MLST agree on."""
    told = (await client.command(f"SIZE {name}")).text
    assert f"size={told};" in (await client.command(f"MLST {name}")).text
    return told


# -- the old file ----------------------------------------------------------------------------------


@pytest.mark.parametrize("framed", [False, True])
async def test_old_file_is_whole_until_the_end(client: RawClient, root: Path, framed: bool) -> None:
    (root / "file").write_bytes(b"old")
    data = (await multiple(client, 1))[0] if framed else await plain(client)
    client.send("STOR file")
    assert await codes(client, 1) == [150]
    await data.send(b"".join(records(CONTENT[: 9 * CHUNK])) if framed else CONTENT[: 9 * CHUNK])
    await has_moved(client, 9 * CHUNK)
    assert (root / "file").read_bytes() == b"old"
    await data.finish(b"" if framed else CONTENT[9 * CHUNK :])
    assert await codes(client, 1) == [226]
    assert (root / "file").read_bytes() == CONTENT[: 9 * CHUNK if framed else None]
    assert names(root) == ["file"]


async def test_new_file_has_the_mode_of_the_old(client: RawClient, root: Path) -> None:
    (root / "file").write_bytes(b"old")
    (root / "file").chmod(0o640)
    assert await upload(client, "STOR file", b"new") == [150, 226]
    assert (root / "file").stat().st_mode & 0o777 == 0o640


async def test_reader_of_the_old_file_gets_the_old(client: RawClient, root: Path) -> None:
    (root / "file").write_bytes(b"old")
    with (root / "file").open("rb") as reader:
        assert await upload(client, "STOR file", b"new") == [150, 226]
        assert reader.read() == b"old"


async def test_synced_upload(root: Path) -> None:
    async with running_server(root, sync_uploads=True) as server, raw_session(server) as client:
        assert await upload(client, "STOR file", b"abc") == [150, 226]
    assert (root / "file").read_bytes() == b"abc"


# -- cut uploads -----------------------------------------------------------------------------------


async def test_cut_upload_continues_with_appe(client: RawClient, root: Path) -> None:
    await cut(client, "STOR file", CONTENT[:20_000])
    assert names(root) == ["file.xftp.part"]
    assert await size(client, "file") == "20000"
    assert (await client.command("RETR file")).code == 425
    assert (await download(client, "RETR file"))[0] == [550]
    assert await upload(client, "APPE file", CONTENT[20_000:]) == [150, 226]
    assert (root / "file").read_bytes() == CONTENT
    assert names(root) == ["file"]


async def test_cut_upload_continues_with_rest(client: RawClient, root: Path) -> None:
    await cut(client, "STOR file", CONTENT[:20_000])
    for offset in (20_001, 10**12):
        assert (await client.command(f"REST {offset}")).code == 350
        assert await upload(client, "STOR file", b"") == [554]
    assert await size(client, "file") == "20000"
    assert (await client.command("REST 12345")).code == 350
    assert await upload(client, "STOR file", CONTENT[12345:]) == [150, 226]
    assert (root / "file").read_bytes() == CONTENT


async def test_cut_upload_is_cut_again(client: RawClient, root: Path) -> None:
    await cut(client, "STOR file", CONTENT[:10_000])
    await cut(client, "APPE file", CONTENT[10_000:20_000])
    assert (await client.command("REST 20000")).code == 350
    await cut(client, "STOR file", CONTENT[20_000:30_000])
    assert await size(client, "file") == "30000"
    streams = dealt(CONTENT[30_000:], 2)
    assert await upload_records(client, "APPE file", streams) == [150, 226]
    assert (root / "file").read_bytes() == CONTENT


async def test_cut_upload_starts_anew_without_rest(client: RawClient, root: Path) -> None:
    await cut(client, "STOR file", CONTENT)
    assert await upload(client, "STOR file", b"other") == [150, 226]
    assert (root / "file").read_bytes() == b"other"


async def test_cut_upload_can_be_deleted(client: RawClient, root: Path) -> None:
    await cut(client, "STOR file", CONTENT)
    assert (await client.command("DELE file")).code == 250
    assert names(root) == []
    assert (await client.command("DELE file")).code == 550


async def test_records_with_a_gap_keep_what_is_before_it(client: RawClient, root: Path) -> None:
    framed = records(CONTENT)
    stream = b"".join([*framed[:3], *framed[5:]])
    assert await upload_records(client, "STOR file", [stream], size=len(CONTENT)) == [150, 426]
    assert await size(client, "file") == str(3 * CHUNK)
    assert await upload(client, "APPE file", CONTENT[3 * CHUNK :]) == [150, 226]
    assert (root / "file").read_bytes() == CONTENT
    assert names(root) == ["file"]


async def test_cut_before_the_first_byte_leaves_nothing(client: RawClient, root: Path) -> None:
    await cut(client, "STOR file", b"")
    assert names(root) == []
    assert (await client.command("SIZE file")).code == 550


@pytest.mark.parametrize("framed", [False, True])
async def test_cut_upload_over_a_file_leaves_it(
    client: RawClient, root: Path, framed: bool
) -> None:
    (root / "file").write_bytes(b"old")
    if framed:
        assert await upload_records(client, "STOR file", records(CONTENT)[:2], size=99_999) == [
            150,
            426,
        ]
    else:
        await cut(client, "STOR file", CONTENT)
    assert (root / "file").read_bytes() == b"old"
    assert await size(client, "file") == "3"
    assert await upload(client, "APPE file", b"er") == [150, 226]
    assert (root / "file").read_bytes() == b"older"
    assert names(root) == ["file"]


@pytest.mark.parametrize("old", [b"old", b""])
async def test_cut_appe_leaves_the_old_length(client: RawClient, root: Path, old: bytes) -> None:
    (root / "file").write_bytes(old)
    await cut(client, "APPE file", CONTENT)
    assert names(root) == ["file"]
    found = await upload_records(client, "APPE file", records(CONTENT)[1:], size=len(CONTENT))
    assert found == [150, 426]
    assert (root / "file").read_bytes() == old
    assert await size(client, "file") == str(len(old))


async def test_rest_into_a_complete_file_goes_through_a_copy(client: RawClient, root: Path) -> None:
    (root / "file").write_bytes(b"0123456789")
    assert (await client.command("REST 4")).code == 350
    await cut(client, "STOR file", b"xyz")
    assert (root / "file").read_bytes() == b"0123456789"
    assert (await client.command("REST 4")).code == 350
    assert await upload(client, "STOR file", b"xyz") == [150, 226]
    assert (root / "file").read_bytes() == b"0123xyz"


@pytest.mark.parametrize(
    ("announced", "found"), [(3, [150, 226]), (2, [150, 226]), (0, [150, 226]), (4, [150, 426])]
)
async def test_plain_upload_with_allo(
    client: RawClient, root: Path, announced: int, found: list[int]
) -> None:
    """Fewer bytes than announced are a cut; more are judged as if nothing had been announced."""
    assert (await client.command(f"ALLO {announced}")).code == 200
    assert await upload(client, "STOR file", b"abc") == found
    assert (root / "file").exists() == (found == [150, 226])


async def test_allo_of_a_restart_and_of_appe(client: RawClient, root: Path) -> None:
    for command, code in (("ALLO 5", 426), ("ALLO 4", 226)):  # the whole file
        (root / "file").write_bytes(b"abc")
        client.send(command, "REST 2")
        assert await codes(client, 2) == [200, 350]
        assert await upload(client, "STOR file", b"xy") == [150, code]
    assert (root / "file").read_bytes() == b"abxy"
    for command, code in (("ALLO 3", 426), ("ALLO 2", 226)):  # what is added
        assert (await client.command(command)).code == 200
        assert await upload(client, "APPE file", b"xy") == [150, code]
    assert (root / "file").read_bytes() == b"abxyxy"


# -- two at once -----------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["STOR file", "APPE file"])
async def test_two_uploads_of_one_name(
    client: RawClient, server: Server, root: Path, command: str
) -> None:
    async with raw_session(server) as other:
        assert (await other.command("TYPE I")).code == 200
        data = await plain(client)
        client.send("STOR file")
        assert await codes(client, 1) == [150]
        await data.send(b"first")
        await has_moved(client, 5)
        assert await upload(other, command, b"second") == [450]
        assert await upload_records(other, command, records(b"second")) == [450]
        assert (await other.command("DELE file")).code == 450
        await data.finish()
        assert await codes(client, 1) == [226]
        assert (root / "file").read_bytes() == b"first"
        assert await upload(other, command, b"second") == [150, 226]
    assert (root / "file").read_bytes() == (b"second" if "STOR" in command else b"firstsecond")


async def test_partial_file_taken_away_meanwhile(
    client: RawClient, server: Server, root: Path
) -> None:
    """The first upload must not make the half of another one its file."""
    async with raw_session(server) as other:
        first, second = await plain(client), await plain(other)
        client.send("STOR file")
        assert await codes(client, 1) == [150]
        await first.send(b"first")
        await has_moved(client, 5)
        (root / "file.xftp.part").unlink()
        other.send("STOR file")
        assert await codes(other, 1) == [150]
        await first.finish()
        assert await codes(client, 1) == [550]
        assert not (root / "file").exists()
        await second.finish(b"second")
        assert await codes(other, 1) == [226]
    assert (root / "file").read_bytes() == b"second"


# -- names -----------------------------------------------------------------------------------------


async def test_stou(client: RawClient, root: Path) -> None:
    given = []
    for _ in range(3):
        data = await plain(client)
        client.send("STOU")
        reply = await client.reply()
        assert reply.code == 150
        assert reply.text.startswith("FILE: ")
        given.append(reply.text.removeprefix("FILE: "))
        await data.finish(given[-1].encode())
        assert await codes(client, 1) == [226]
    assert sorted(given) == names(root)
    assert len(set(given)) == 3
    for name in given:
        assert (root / name).read_bytes() == name.encode()


async def test_stou_next_to_a_name_and_a_cut_upload(client: RawClient, root: Path) -> None:
    (root / "a").write_bytes(b"old")
    await cut(client, "STOR a.1", b"half")
    assert await upload(client, "STOU a", b"new") == [150, 226]
    assert names(root) == ["a", "a.1.xftp.part", "a.2"]


@pytest.mark.parametrize("command", ["STOR", "APPE"])
async def test_target_that_is_no_file(client: RawClient, root: Path, command: str) -> None:
    (root / "dir").mkdir()
    os.mkfifo(root / "fifo")
    (root / "link").symlink_to("dir")
    for target, code in (
        ("dir", 550),
        ("/", 550),
        ("dir/", 550),
        ("link", 550),
        ("fifo", 550),
        ("nowhere/file", 550),
        ("x.xftp.part", 553),
        ("x.xftp.journal", 553),
        ("x" * 256, 553),
    ):
        assert await upload(client, f"{command} {target}", b"x") == [code], target
        assert await upload_records(client, f"{command} {target}", records(b"x")) == [code]
    assert names(root) == ["dir", "fifo", "link"]
