"""RETR and STOR over several connections: every size, every number, both directions of dialling."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import RawClient
from xftp.protocol import records as record_module

from .support import (
    CHUNK,
    assembled,
    codes,
    dealt,
    download,
    download_records,
    multiple,
    names,
    outcome,
    pattern,
    plain,
    records,
    upload_records,
)

SIZES = (0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK - 1, 3 * CHUNK, 3 * CHUNK + 1)
LARGE = 700 * CHUNK + 17  # more than the batches of eight connections together
WAYS = pytest.mark.parametrize("active", [False, True], ids=["MPSV", "MPRT"])


@WAYS
@pytest.mark.parametrize("count", range(1, 9))
@pytest.mark.parametrize("size", [*SIZES, LARGE])
async def test_retr(client: RawClient, root: Path, size: int, count: int, active: bool) -> None:
    content = pattern(size)
    (root / "file").write_bytes(content)
    found, streams = await download_records(client, "RETR file", count, active=active)
    assert found == [150, 226]
    assert assembled(streams, size) == content


@WAYS
@pytest.mark.parametrize("told", [True, False], ids=["ALLO", "untold"])
@pytest.mark.parametrize("count", range(1, 9))
@pytest.mark.parametrize("size", [*SIZES, LARGE])
async def test_stor(
    client: RawClient, root: Path, size: int, count: int, told: bool, active: bool
) -> None:
    content = pattern(size)
    found = await upload_records(
        client, "STOR file", dealt(content, count), active=active, size=size if told else None
    )
    assert found == [150, 226]
    assert (root / "file").read_bytes() == content
    assert names(root) == ["file"]


@WAYS
async def test_appe(client: RawClient, root: Path, active: bool) -> None:
    (root / "file").write_bytes(b"before ")
    content = pattern(2 * CHUNK + 3)
    # With APPE, ALLO tells what is added.
    found = await upload_records(
        client, "APPE file", dealt(content, 3), active=active, size=len(content)
    )
    assert found == [150, 226]
    assert (root / "file").read_bytes() == b"before " + content


async def test_one_port_is_still_framed(client: RawClient, root: Path) -> None:
    (root / "file").write_bytes(b"abc")
    found, streams = await download_records(client, "RETR file", 1)
    assert (found, streams) == ([150, 226], [b"\0\0\0\0abc"])


# -- restart ---------------------------------------------------------------------------------------

RESTARTS = (1, CHUNK, CHUNK + 1, 3 * CHUNK, 3 * CHUNK + 7)


@WAYS
@pytest.mark.parametrize("offset", RESTARTS)
async def test_retr_after_rest_counts_from_there(
    client: RawClient, root: Path, offset: int, active: bool
) -> None:
    content = pattern(3 * CHUNK + 7)
    (root / "file").write_bytes(content)
    assert (await client.command(f"REST {offset}")).code == 350
    found, streams = await download_records(client, "RETR file", 2, active=active)
    assert found == [150, 226]
    assert assembled(streams, len(content) - offset) == content[offset:]


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("offset", RESTARTS)
async def test_stor_after_rest_keeps_what_is_before(
    client: RawClient, root: Path, offset: int, told: bool
) -> None:
    old, new = pattern(3 * CHUNK + 7), pattern(2 * CHUNK + 5)[::-1]
    (root / "file").write_bytes(old)
    assert (await client.command(f"REST {offset}")).code == 350
    size = offset + len(new) if told else None
    assert await upload_records(client, "STOR file", dealt(new, 2), size=size) == [150, 226]
    assert (root / "file").read_bytes() == old[:offset] + new


async def test_rest_holds_for_one_transfer(client: RawClient, root: Path) -> None:
    (root / "file").write_bytes(b"abcdef")
    assert (await client.command("REST 3")).code == 350
    assert (await download(client, "RETR file"))[1] == b"def"
    assert (await download(client, "RETR file"))[1] == b"abcdef"


async def test_rest_does_not_outlive_another_command(client: RawClient, root: Path) -> None:
    (root / "file").write_bytes(b"abcdef")
    for between in ("CWD /", "MKD d", "RETR missing"):
        assert (await client.command("REST 3")).code == 350
        await client.command(between)
        assert (await download(client, "RETR file"))[1] == b"abcdef"


@pytest.mark.parametrize("offset", [4, 10**12, 2**62])
@pytest.mark.parametrize("command", ["RETR file", "STOR file", "STOR new"])
async def test_rest_beyond_the_end(
    client: RawClient, root: Path, command: str, offset: int
) -> None:
    (root / "file").write_bytes(b"abc")
    for open_some in (lambda: plain(client), lambda: multiple(client, 2)):
        assert (await client.command(f"REST {offset}")).code == 350
        await open_some()
        assert (await client.command(command)).code == 554
    assert (root / "file").read_bytes() == b"abc"
    assert names(root) == ["file"]  # no sparse bomb either


async def test_rest_beyond_the_announced_size(client: RawClient, root: Path) -> None:
    (root / "file").write_bytes(b"abcdef")
    client.send("REST 5", "ALLO 4")
    assert await codes(client, 2) == [350, 200]
    await multiple(client, 2)
    assert (await client.command("STOR file")).code == 554
    assert (root / "file").read_bytes() == b"abcdef"


# -- limits ----------------------------------------------------------------------------------------


@pytest.fixture
def four_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let four records be all that sequence numbers can tell apart; 32 TiB fit no disk here."""
    monkeypatch.setattr(record_module, "MAX_RECORDS", 4)


@pytest.mark.usefixtures("four_records")
async def test_retr_of_too_many_records(client: RawClient, root: Path) -> None:
    content = pattern(4 * CHUNK + 1)
    (root / "file").write_bytes(content)
    connections = await multiple(client, 2)
    assert (await client.command("RETR file")).code == 552
    assert [await data.read() for data in connections] == [b"", b""]
    # What is left behind byte 1 fits, and so does a plain transfer of everything.
    assert (await client.command("REST 1")).code == 350
    found, streams = await download_records(client, "RETR file", 2)
    assert (found, assembled(streams, 4 * CHUNK)) == ([150, 226], content[1:])
    assert await download(client, "RETR file") == ([150, 226], content)


@pytest.mark.usefixtures("four_records")
async def test_stor_of_too_many_records(client: RawClient, root: Path) -> None:
    content = pattern(4 * CHUNK + 1)
    found = await upload_records(client, "STOR file", dealt(content, 2), size=len(content))
    assert found == [552]
    assert names(root) == []


async def test_type_a_has_no_records(client: RawClient, root: Path) -> None:
    (root / "file").write_bytes(b"abc\n")
    for command in ("RETR file", "STOR file", "APPE file", "STOU"):
        assert (await client.command("TYPE A")).code == 200
        connections = await multiple(client, 2)
        assert (await client.command(command)).code == 504
        assert [await data.read() for data in connections] == [b"", b""]
    assert (root / "file").read_bytes() == b"abc\n"
    assert (await client.command("TYPE I")).code == 200
    assert (await download(client, "RETR file"))[1] == b"abc\n"


@pytest.mark.parametrize("command", ["LIST", "NLST", "MLSD"])
async def test_listing_comes_unframed_over_the_first(
    client: RawClient, root: Path, command: str
) -> None:
    (root / "file").write_bytes(b"abc")
    _, expected = await download(client, command)
    assert b"file" in expected
    connections = await multiple(client, 3)
    client.send(command)
    streams = [await data.read() for data in connections]
    assert await outcome(client) == [150, 226]
    assert sorted(streams) == [b"", b"", expected]


# -- what a correct sender may do ------------------------------------------------------------------


@pytest.mark.parametrize("told", [True, False])
async def test_records_in_any_order(client: RawClient, root: Path, told: bool) -> None:
    content = pattern(9 * CHUNK + 5)
    framed = records(content)
    # The short last record ends its connection, since nothing but the end tells its length.
    streams = [
        b"".join(framed[6:3:-1]),
        b"".join([*framed[3::-1], framed[8], framed[7], framed[9]]),
    ]
    size = len(content) if told else None
    assert await upload_records(client, "STOR file", streams, size=size) == [150, 226]
    assert (root / "file").read_bytes() == content


@pytest.mark.parametrize("told", [True, False])
async def test_records_twice(client: RawClient, root: Path, told: bool) -> None:
    content = pattern(5 * CHUNK + 5)
    whole = b"".join(records(content))
    size = len(content) if told else None
    streams = [records(content)[2] + whole, whole]
    assert await upload_records(client, "STOR file", streams, size=size) == [150, 226]
    assert (root / "file").read_bytes() == content


async def test_short_record_before_others(client: RawClient, root: Path) -> None:
    content = pattern(5 * CHUNK + 5)
    backwards = b"".join(reversed(records(content)))  # possible since ALLO tells its length
    found = await upload_records(client, "STOR file", [backwards], size=len(content))
    assert found == [150, 226]
    assert (root / "file").read_bytes() == content
