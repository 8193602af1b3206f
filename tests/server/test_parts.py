"""Restart with holes: what HELD tells, and what PART makes of RETR and STOR."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from tests.support import RawClient, raw_session, running_server
from xftp.transport.kept import working_names

from .support import (
    CHUNK,
    codes,
    download_records,
    has_moved,
    multiple,
    names,
    outcome,
    pattern,
    plain,
    record,
    records,
    until,
    upload,
    upload_records,
)

SIZE = 10 * CHUNK + 100
CONTENT = pattern(SIZE)
FRAMED = records(CONTENT)
TIME = "20260102030405.678901"
VERSION = f"Size={SIZE};Modify={TIME};"


async def cut_upload(client: RawClient, came: list[int], part: str = f"PART {VERSION}") -> None:
    """Upload these records over two connections, and no more."""
    if part:
        assert (await client.command(part)).code == 350
    streams = [b"".join(FRAMED[number] for number in came[start::2]) for start in (0, 1)]
    assert await upload_records(client, "STOR file", streams, size=SIZE) == [150, 426]


async def test_a_cut_upload_goes_on_with_what_is_missing(client: RawClient, root: Path) -> None:
    await cut_upload(client, [0, 1, 4, 6, 10])
    reply = await client.command("HELD file")
    ranges = "0-16383,32768-40959,49152-57343,81920-82019"
    assert (reply.code, reply.text) == (213, f"{VERSION}Ranges={ranges};")
    assert (await client.command("SIZE file")).text == str(2 * CHUNK)
    missing = "16384-32767,40960-49151,57344-81919"
    reply = await client.command(f"PART {VERSION}Ranges={missing};")
    assert (reply.code, reply.text) == (350, "Restarting with 3 ranges, 49152 bytes.")
    streams = [FRAMED[2] + FRAMED[8] + FRAMED[5], FRAMED[9] + FRAMED[3] + FRAMED[7]]
    assert await upload_records(client, "STOR file", streams, size=SIZE) == [150, 226]
    assert (root / "file").read_bytes() == CONTENT
    assert names(root) == ["file"]


async def test_a_second_cut_keeps_both(client: RawClient, root: Path) -> None:
    await cut_upload(client, [1])
    await cut_upload(client, [3, 5], f"PART {VERSION}Ranges=0-8191,16384-{SIZE - 1};")
    assert (await client.command("HELD file")).text.endswith(
        "Ranges=8192-16383,24576-32767,40960-49151;"
    )
    assert names(root) == ["file.xftp.journal", "file.xftp.part"]


@pytest.mark.parametrize("active", [False, True], ids=["MPSV", "MPRT"])
async def test_retr_sends_the_records_that_hold_the_ranges(
    client: RawClient, root: Path, active: bool
) -> None:
    (root / "file").write_bytes(CONTENT)
    os.utime(root / "file", (1767323045.9, 1767323045.9))
    facts = f"Size={SIZE};Modify=20260102030405;Ranges=8191-8192,{SIZE - 1}-{SIZE - 1};"
    assert (await client.command(f"PART {facts}")).code == 350
    found, streams = await download_records(client, "RETR file", 2, active=active)
    assert found == [150, 226]
    sent = b"".join(streams)
    assert sorted([sent.count(FRAMED[0]), sent.count(FRAMED[1])]) == [1, 1]
    assert len(sent) == len(FRAMED[0] + FRAMED[1] + FRAMED[10])
    found, streams = await download_records(client, "RETR file", 2)
    assert sum(map(len, streams)) == len(b"".join(FRAMED)), "PART is for one transfer"


async def test_the_150_tells_what_comes(client: RawClient, root: Path) -> None:
    (root / "file").write_bytes(CONTENT)
    assert (await client.command("PART Ranges=0-0,8192-8192;")).code == 350
    connections = await multiple(client, 2)
    client.send("RETR file")
    assert f"({2 * CHUNK} bytes)" in (await client.reply()).text
    await asyncio.gather(*(each.read() for each in connections))
    assert await codes(client, 1) == [226]


@pytest.mark.parametrize(
    "facts",
    [
        f"Size={SIZE + 1};",
        "Modify=20260102030406;",
        f"Size={SIZE};Modify=20260102030405.1;Ranges=0-0;",
        f"Ranges=0-{SIZE};",
    ],
)
async def test_a_file_that_was_changed_is_not_sent(
    client: RawClient, root: Path, facts: str
) -> None:
    (root / "file").write_bytes(CONTENT)
    os.utime(root / "file", (1767323045.9, 1767323045.9))
    assert (await client.command(f"PART {facts}")).code == 350
    await multiple(client, 1)
    assert (await client.command("RETR file")).code == 554


@pytest.mark.parametrize(
    ("facts", "code"),
    [
        (f"Size={SIZE};Modify=20260102030405;Ranges=0-{SIZE - 1};", 554),  # another version
        (f"Size={SIZE - 1};Modify={TIME};Ranges=0-{SIZE - 2};", 554),
        (f"{VERSION}Ranges=0-8191;", 554),  # does not fill all holes
        (f"{VERSION}Ranges=16384-{SIZE - 1};", 554),
        ("Ranges=0-8191;", 501),
    ],
)
async def test_what_does_not_fit_changes_nothing(
    client: RawClient, root: Path, facts: str, code: int
) -> None:
    await cut_upload(client, [1, 3])
    before = await client.command("HELD file")
    assert (await client.command(f"PART {facts}")).code == 350
    await multiple(client, 1)
    assert (await client.command("STOR file")).code == code
    assert await client.command("HELD file") == before
    assert (root / "file.xftp.part").read_bytes()[CHUNK : 2 * CHUNK] == FRAMED[1][4:]


async def test_an_allo_has_to_tell_the_same(client: RawClient) -> None:
    await cut_upload(client, [1])
    assert (await client.command(f"PART {VERSION}Ranges=0-{SIZE - 1};")).code == 350
    assert (await client.command(f"ALLO {SIZE - 1}")).code == 200
    await multiple(client, 1)
    assert (await client.command("STOR file")).code == 554


async def test_nothing_is_held(client: RawClient, root: Path) -> None:
    (root / "file").write_bytes(CONTENT)
    assert (await client.command("HELD file")).code == 550
    assert (await client.command(f"PART {VERSION}Ranges=0-{SIZE - 1};")).code == 350
    await multiple(client, 1)
    assert (await client.command("STOR file")).code == 554
    assert (root / "file").read_bytes() == CONTENT
    assert names(root) == ["file"]


@pytest.mark.parametrize("command", ["RETR file", "STOR file"])
async def test_ranges_need_records(client: RawClient, root: Path, command: str) -> None:
    (root / "file").write_bytes(CONTENT)
    assert (await client.command(f"PART {VERSION}Ranges=0-0;")).code == 350
    data = await plain(client)
    assert (await client.command(command)).code in (504, 554)
    await data.close()


@pytest.mark.parametrize("command", ["APPE file", "STOU"])
async def test_part_goes_with_retr_and_stor_only(client: RawClient, command: str) -> None:
    assert (await client.command(f"PART {VERSION}")).code == 350
    await plain(client)
    assert (await client.command(command)).code == 504


async def test_without_ranges_rest_goes_on_with_the_same_version(
    client: RawClient, root: Path
) -> None:
    (root / "file").write_bytes(b"the old one")
    await cut_upload(client, [0, 1, 3])
    for modified, expected in ((TIME.replace("6", "7"), [554]), (TIME, [150, 226])):
        assert (await client.command(f"PART Size={SIZE};Modify={modified};")).code == 350
        assert (await client.command("REST 10000")).code == 350
        assert (root / "file").read_bytes() == b"the old one"
        assert await upload(client, "STOR file", CONTENT[10_000:]) == expected
    assert (root / "file").read_bytes() == CONTENT


async def test_rest_and_part_take_the_place_of_each_other(client: RawClient, root: Path) -> None:
    (root / "file").write_bytes(CONTENT)
    for command in ("PART Ranges=0-0;", f"REST {10 * CHUNK}"):
        assert (await client.command(command)).code == 350
    _, streams = await download_records(client, "RETR file", 1)
    assert streams == [record(0, CONTENT[10 * CHUNK :])]
    for command in ("REST 5", "RANG 0 4", "PART Ranges=0-0;"):
        assert (await client.command(command)).code == 350
    _, streams = await download_records(client, "RETR file", 1)
    assert streams == [FRAMED[0]]


async def test_what_is_not_known_tells_no_version(client: RawClient) -> None:
    await cut_upload(client, [0, 2], part="")
    reply = await client.command("HELD file")
    assert reply.text == "Ranges=0-8191,16384-24575;"


async def test_a_plain_upload_is_known_too(client: RawClient) -> None:
    assert (await client.command(f"PART {VERSION}")).code == 350
    assert (await client.command(f"ALLO {SIZE}")).code == 200
    assert await upload(client, "STOR file", CONTENT[:9000]) == [150, 426]
    assert (await client.command("HELD file")).text == f"{VERSION}Ranges=0-8999;"


async def test_the_journal_is_there_while_the_data_comes(
    client: RawClient, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What another session, or a daemon that was started anew, is told after a kill."""
    monkeypatch.setattr("xftp.transport.checkpoints.CHECKPOINT_BYTES", 1)
    assert (await client.command(f"PART {VERSION}")).code == 350
    assert (await client.command(f"ALLO {SIZE}")).code == 200
    (data,) = await multiple(client, 1)
    client.send("STOR file")
    await data.send(FRAMED[3] + FRAMED[7])
    assert await codes(client, 1) == [150]
    await has_moved(client, 2 * CHUNK)
    async with running_server(root) as other, raw_session(other) as second:

        async def is_noted() -> bool:
            return "Ranges=24576-32767" in (await second.command("HELD file")).text

        await until(is_noted)
        assert VERSION in (await second.command("HELD file")).text
        assert (await second.command("TYPE I")).code == 200
        assert (await second.command("SIZE file")).text == "0"
    await data.reset()
    assert await outcome(client) == [426]


async def test_feat_lists_both(client: RawClient) -> None:
    lines = (await client.command("FEAT")).lines
    assert "PART RETR;STOR" in [line.strip() for line in lines]
    assert "HELD" in [line.strip() for line in lines]


@pytest.mark.parametrize("suffix", [0, 1])
async def test_nobody_gives_a_file_the_name_of_a_journal(
    client: RawClient, root: Path, suffix: int
) -> None:
    (root / "made up").write_text("{}")
    assert (await client.command("RNFR made up")).code == 350
    assert (await client.command(f"RNTO {working_names('file')[suffix]}")).code == 553
