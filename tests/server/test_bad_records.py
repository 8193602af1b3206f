"""Uploads that must not succeed, and the connections that come or do not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support import RawClient, raw_session, running_server

from .support import (
    CHUNK,
    Data,
    assembled,
    codes,
    dealt,
    dial,
    has_moved,
    listening,
    multiple,
    multiple_ports,
    names,
    outcome,
    pattern,
    record,
    records,
    until,
    upload_records,
)

CONTENT = pattern(3 * CHUNK + 10)
WHOLE = records(CONTENT)
SIZE = len(CONTENT)
ABORTED = [150, 426]
CONTRADICTION = [150, 451]

BAD_UPLOADS = {
    "sequence beyond the end": ([*WHOLE[:3], record(4, b"x" * CHUNK)], SIZE, CONTRADICTION),
    "the last sequence number there is": (
        [record(2**32 - 1, b"x" * CHUNK), *WHOLE],
        SIZE,
        CONTRADICTION,
    ),
    "a record of an empty file": ([record(0, b"x" * CHUNK)], 0, CONTRADICTION),
    "a short record of an empty file": ([record(0, b"x")], 0, ABORTED),
    "ALLO too small by records": (WHOLE, CHUNK, CONTRADICTION),
    "ALLO too small by bytes": (WHOLE, SIZE - 5, ABORTED),
    "ALLO too large by records": (WHOLE[:3], SIZE + CHUNK, ABORTED),
    "ALLO too large by bytes": (WHOLE, SIZE + 5, ABORTED),
    "ALLO of a whole last record": (WHOLE[:3], SIZE, ABORTED),
    "missing first record": (WHOLE[1:], SIZE, ABORTED),
    "missing middle record": ([WHOLE[0], *WHOLE[2:]], SIZE, ABORTED),
    "nothing at all": ([], SIZE, ABORTED),
    "closed inside a record": ([*WHOLE[:2], WHOLE[2][:-1]], SIZE, ABORTED),
    "closed inside the last record": ([*WHOLE[:3], WHOLE[3][:-1]], SIZE, ABORTED),
    "closed inside a sequence number": ([*WHOLE[:3], WHOLE[3][:2]], SIZE, ABORTED),
    "closed behind a sequence number": ([*WHOLE[:3], WHOLE[3][:4]], SIZE, ABORTED),
    "untold: missing first record": (WHOLE[1:], None, ABORTED),
    "untold: missing middle record": ([WHOLE[0], *WHOLE[2:]], None, ABORTED),
    "untold: closed inside a sequence number": ([*WHOLE[:3], b"\0\0"], None, ABORTED),
    "untold: closed behind a sequence number": ([*WHOLE[:3], WHOLE[3][:4]], None, ABORTED),
    "untold: short record with a gap before": ([*WHOLE[:2], WHOLE[3]], None, ABORTED),
}


@pytest.mark.parametrize("active", [False, True], ids=["MPSV", "MPRT"])
@pytest.mark.parametrize(("stream", "size", "found"), BAD_UPLOADS.values(), ids=BAD_UPLOADS)
async def test_bad_upload(
    client: RawClient,
    root: Path,
    stream: list[bytes],
    size: int | None,
    found: list[int],
    active: bool,
) -> None:
    (root / "file").write_bytes(b"old")
    said = await upload_records(client, "STOR file", [b"".join(stream)], size=size, active=active)
    assert said == found
    assert (root / "file").read_bytes() == b"old"
    # The session goes on, and the name is free for the next upload.
    assert await upload_records(client, "STOR file", dealt(CONTENT, 2)) == [150, 226]
    assert (root / "file").read_bytes() == CONTENT
    assert names(root) == ["file"]


@pytest.mark.parametrize("size", [SIZE, None])
async def test_short_record_in_the_middle(client: RawClient, root: Path, size: int | None) -> None:
    """What follows it is not where a record can be; whatever it looks like, it is no success."""
    streams = [WHOLE[0] + WHOLE[1][:100] + WHOLE[2], WHOLE[3]]
    said = await upload_records(client, "STOR file", streams, size=size)
    assert said[0] == 150
    assert said[1] in (426, 451, 552)
    assert not (root / "file").exists()


@pytest.mark.parametrize("size", [SIZE, None])
async def test_two_connections_end_inside_a_record(
    client: RawClient, root: Path, size: int | None
) -> None:
    streams = [WHOLE[0] + WHOLE[1][:100], WHOLE[2] + WHOLE[3]]
    assert await upload_records(client, "STOR file", streams, size=size) == ABORTED
    assert not (root / "file").exists()


async def test_highest_number_untold_leaves_nothing_large(client: RawClient, root: Path) -> None:
    said = await upload_records(client, "STOR file", [record(2**32 - 1, b"x" * CHUNK)])
    assert said[0] == 150
    assert said[1] in (426, 552)  # 552 where the file system ends before 32 TiB
    assert not (root / "file").exists()
    assert sum((root / name).stat().st_blocks * 512 for name in names(root)) < 4 * CHUNK


async def test_reset_data_connection(client: RawClient, root: Path) -> None:
    first, second = await multiple(client, 2)
    client.send("STOR file")
    await first.send(WHOLE[0])
    await second.send(WHOLE[1])
    assert await codes(client, 1) == [150]
    await has_moved(client, 2 * CHUNK)
    await second.reset()
    assert await codes(client, 1) == [426]
    assert not (root / "file").exists()
    assert (await client.command("SIZE file")).text == str(2 * CHUNK)


# -- connections that come, or do not --------------------------------------------------------------


@pytest.fixture
async def impatient(root: Path) -> AsyncIterator[RawClient]:
    """A session with a server that does not wait long for data."""
    async with (
        running_server(root, stall_timeout_s=0.3, open_timeout_s=0.3) as server,
        raw_session(server) as session,
    ):
        assert (await session.command("TYPE I")).code == 200
        yield session


@pytest.mark.parametrize("size", [SIZE, None])
async def test_more_connections_than_announced(
    client: RawClient, root: Path, size: int | None
) -> None:
    connections = await multiple(client, 2)
    port = connections[0].writer.get_extra_info("peername")[1]
    third = await dial(port)
    if size is not None:
        assert (await client.command(f"ALLO {size}")).code == 200
    client.send("STOR file")
    assert await third.read() == b""
    await asyncio.gather(
        *(c.finish(s) for c, s in zip(connections, dealt(CONTENT, 2), strict=True))
    )
    assert await outcome(client) == [150, 226]
    assert (root / "file").read_bytes() == CONTENT


async def test_fewer_connections_than_offered(client: RawClient, root: Path) -> None:
    """Nobody said how many would come: the eight that were offered need not."""
    for size in (SIZE, None):
        said = await upload_records(
            client, "STOR file", dealt(CONTENT, 3), announced=False, size=size
        )
        assert said == [150, 226]
        assert (root / "file").read_bytes() == CONTENT
        (root / "file").unlink()


async def test_announced_connection_never_arrives(impatient: RawClient, root: Path) -> None:
    """With ALLO it is not missed; without, nobody knows what it would have brought."""
    for size, expected in ((SIZE, [150, 226]), (None, ABORTED)):
        assert (await impatient.command("OPTS MULT Connections=3;")).code == 200
        _, ports = multiple_ports((await impatient.command("MPSV")).text)
        if size is not None:
            assert (await impatient.command(f"ALLO {size}")).code == 200
        impatient.send("STOR file")
        for stream in dealt(CONTENT, 2):
            await (await dial(ports[0])).finish(stream)
        assert await outcome(impatient) == expected
        assert (root / "file").exists() == (expected != ABORTED)
        (root / "file").unlink(missing_ok=True)


async def test_missing_records_with_a_missing_connection(impatient: RawClient, root: Path) -> None:
    assert (await impatient.command("OPTS MULT Connections=3;")).code == 200
    _, ports = multiple_ports((await impatient.command("MPSV")).text)
    impatient.send(f"ALLO {SIZE}", "STOR file")
    for stream in dealt(CONTENT, 3)[:2]:
        await (await dial(ports[0])).finish(stream)
    assert await codes(impatient, 3) == [200, 150, 426]
    assert not (root / "file").exists()


async def test_late_connection_brings_the_end(client: RawClient, root: Path) -> None:
    """Nothing was announced, and what came first looks like a whole file of one record."""
    content = CONTENT[: 2 * CHUNK]
    _, ports = multiple_ports((await client.command("MPSV")).text)
    client.send("STOR file")
    await (await dial(ports[0])).finish(records(content)[0])
    assert await codes(client, 1) == [150]
    await has_moved(client, CHUNK)
    await (await dial(ports[1])).finish(records(content)[1])
    assert await codes(client, 1) == [226]
    assert (root / "file").read_bytes() == content


async def test_dialled_port_where_nobody_listens(impatient: RawClient, root: Path) -> None:
    """Of three MPRT ports one is closed: the others carry the file."""
    (root / "file").write_bytes(CONTENT)
    async with listening(3) as (ports, arrived):
        unused = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
        closed_port = unused.sockets[0].getsockname()[1]
        unused.close()
        await unused.wait_closed()
        listed = ",".join(map(str, [*ports[:2], closed_port]))
        impatient.send(f"MPRT IP4|TCP|127.0.0.1|{listed}", "RETR file")
        assert await codes(impatient, 2) == [200, 150]
        await until(lambda: bool(arrived))
        assert await codes(impatient, 1) == [226]
        streams = await asyncio.gather(*map(Data.read, arrived))
        assert assembled(streams, SIZE) == CONTENT
    impatient.send(f"MPRT IP4|TCP|127.0.0.1|{closed_port}", "RETR file")
    assert await codes(impatient, 3) == [200, 150, 425]


@pytest.mark.parametrize("command", ["RETR file", "STOR new", "LIST"])
async def test_no_connection_at_all(impatient: RawClient, root: Path, command: str) -> None:
    (root / "file").write_bytes(CONTENT)
    for way in ("EPSV", "MPSV"):
        assert (await impatient.command(way)).code == 229
        impatient.send(command)
        assert await codes(impatient, 2) == [150, 425]
    assert names(root) == ["file"]


async def test_receiver_that_reads_nothing(impatient: RawClient, root: Path) -> None:
    (root / "file").touch()
    with (root / "file").open("r+b") as file:
        file.truncate(1 << 28)  # more than the buffers of the sockets hold
    connections = await multiple(impatient, 2)
    for data in connections:
        data.writer.transport.pause_reading()
    impatient.send("RETR file")
    assert await codes(impatient, 2) == ABORTED
    assert (await impatient.command("NOOP")).code == 200
