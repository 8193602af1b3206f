"""TYPE A: CRLF on the wire, LF in the file, wherever the pieces are cut."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import RawClient
from xftp.server.commands import transfers

from .support import codes, download, has_moved, plain, upload

FILE = b"one\ntwo\n\n\xc3\xa9\xff\rlone\n"
WIRE = b"one\r\ntwo\r\n\r\n\xc3\xa9\xff\rlone\r\n"


@pytest.fixture
async def ascii_client(client: RawClient) -> RawClient:
    assert (await client.command("TYPE A")).code == 200
    return client


@pytest.mark.parametrize("block", range(1, len(FILE) + 1))
async def test_retr(
    ascii_client: RawClient, root: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(transfers, "_ASCII_BLOCK_BYTES", block)
    (root / "file").write_bytes(FILE)
    assert await download(ascii_client, "RETR file") == ([150, 226], WIRE)


@pytest.mark.parametrize("at", range(len(WIRE)))
async def test_stor(ascii_client: RawClient, root: Path, at: int) -> None:
    data = await plain(ascii_client)
    ascii_client.send("STOR file")
    assert await codes(ascii_client, 1) == [150]
    await data.send(WIRE[:at])
    await has_moved(ascii_client, at)
    await data.finish(WIRE[at:])
    assert await codes(ascii_client, 1) == [226]
    assert (root / "file").read_bytes() == FILE


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"\r\n", b"no end", b"x" * 1_000_000, b"\n" * 600_000]
)
async def test_there_and_back(ascii_client: RawClient, root: Path, content: bytes) -> None:
    (root / "file").write_bytes(content)
    found, wire = await download(ascii_client, "RETR file")
    assert found == [150, 226]
    assert await upload(ascii_client, "STOR copy", wire) == [150, 226]
    assert (root / "copy").read_bytes() == content.replace(b"\r\n", b"\n")


@pytest.mark.parametrize("last", [b"\r", b"a\r", b"\r\r"])
async def test_lone_cr_at_the_end(ascii_client: RawClient, root: Path, last: bytes) -> None:
    assert await upload(ascii_client, "STOR file", last) == [150, 226]
    assert (root / "file").read_bytes() == last


async def test_appe(ascii_client: RawClient, root: Path) -> None:
    (root / "file").write_bytes(b"a\n")
    assert await upload(ascii_client, "APPE file", b"b\r\n") == [150, 226]
    assert (root / "file").read_bytes() == b"a\nb\n"


@pytest.mark.parametrize("command", ["RETR file", "STOR file"])
async def test_restart_needs_type_i(ascii_client: RawClient, root: Path, command: str) -> None:
    (root / "file").write_bytes(b"abc")
    assert (await ascii_client.command("REST 1")).code == 350
    await plain(ascii_client)
    assert (await ascii_client.command(command)).code == 554
    assert (await ascii_client.command("SIZE file")).code == 550


async def test_allo_does_not_count_line_ends(ascii_client: RawClient, root: Path) -> None:
    for announced in (1, 3, 100):
        assert (await ascii_client.command(f"ALLO {announced}")).code == 200
        assert await upload(ascii_client, "STOR file", b"a\r\nb") == [150, 226]
        assert (root / "file").read_bytes() == b"a\nb"


@pytest.mark.parametrize("name", ["A", "a", "A N", "a n", "I", "i", "L 8", "l 8"])
async def test_names_of_types(client: RawClient, root: Path, name: str) -> None:
    (root / "file").write_bytes(b"\n")
    assert (await client.command(f"TYPE {name}")).code == 200
    _, content = await download(client, "RETR file")
    assert content == (b"\r\n" if name.upper().startswith("A") else b"\n")
