"""LIST, NLST, MLSD, MLST, STAT: what they tell, and in which form."""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.support import RawClient, raw_session, running_server

from .support import download, upload

LONG_AGO = 981_173_106  # 2001-02-03 04:05:06 UTC
ALL_FACTS = "type;size;modify;perm;unique;unix.mode;"


@pytest.fixture
def tree(root: Path) -> Path:
    (root / "b.txt").write_bytes(b"abc")
    (root / "a.txt").write_bytes(b"")
    (root / "c.bin").write_bytes(b"x" * 5)
    (root / "dir").mkdir()
    (root / "dir" / "inner").write_bytes(b"in")
    for path in (root / "b.txt", root / "dir"):
        os.utime(path, (LONG_AGO, LONG_AGO))
    (root / "b.txt").chmod(0o640)
    return root


async def listed(client: RawClient, command: str) -> list[str]:
    """Give the lines of a listing that succeeds."""
    found, content = await download(client, command)
    assert found == [150, 226]
    assert content == b"" or content.endswith(b"\r\n")
    return content.decode().split("\r\n")[:-1]


# -- LIST and NLST ---------------------------------------------------------------------------------


@pytest.mark.usefixtures("tree")
async def test_list_has_the_form_of_ls(client: RawClient) -> None:
    lines = await listed(client, "LIST")
    assert [line.split()[-1] for line in lines] == ["a.txt", "b.txt", "c.bin", "dir"]
    assert re.fullmatch(r"-rw-r----- +1 \S+ +\S+ +3 Feb  3  2001 b\.txt", lines[1])
    assert lines[3].startswith("drwx")
    now = datetime.now(UTC)
    assert re.search(rf" {now:%b} +{now.day} \d\d:\d\d a\.txt$", lines[0]) or now.hour in (0, 23)


@pytest.mark.usefixtures("tree")
@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("", ["a.txt", "b.txt", "c.bin", "dir"]),
        ("/", ["a.txt", "b.txt", "c.bin", "dir"]),
        (".", ["a.txt", "b.txt", "c.bin", "dir"]),
        ("-la", ["a.txt", "b.txt", "c.bin", "dir"]),
        ("-lR", ["a.txt", "b.txt", "c.bin", "dir"]),
        ("-a -l dir", ["inner"]),
        ("dir", ["inner"]),
        ("b.txt", ["b.txt"]),
        ("*.txt", ["a.txt", "b.txt"]),
        ("[bc].*", ["b.txt", "c.bin"]),
        ("?.bin", ["c.bin"]),
        ("dir/*", ["inner"]),
        ("*.none", []),
        ("dir/../*.bin", ["c.bin"]),
    ],
)
async def test_what_is_listed(client: RawClient, argument: str, expected: list[str]) -> None:
    lines = await listed(client, f"LIST {argument}".rstrip())
    assert [line.split()[-1] for line in lines] == expected
    reply = await client.command(f"STAT {argument}".rstrip())
    if argument:
        assert [line.split()[-1] for line in reply.lines[1:-1]] == expected


@pytest.mark.usefixtures("tree")
@pytest.mark.parametrize(
    ("argument", "expected"),
    [
        ("", ["a.txt", "b.txt", "c.bin", "dir"]),
        (".", ["a.txt", "b.txt", "c.bin", "dir"]),
        ("*.txt", ["a.txt", "b.txt"]),
        ("dir", ["dir/inner"]),
        ("dir/", ["dir/inner"]),
        ("/dir", ["/dir/inner"]),
        ("dir/*", ["dir/inner"]),
        ("/dir/i*", ["/dir/inner"]),
        ("dir/inner", ["dir/inner"]),
        ("/b.txt", ["/b.txt"]),
    ],
)
async def test_nlst_gives_names_that_retr_takes(
    client: RawClient, argument: str, expected: list[str]
) -> None:
    """RFC 1123 section 4.1.2.7."""
    lines = await listed(client, f"NLST {argument}".rstrip())
    assert lines == expected
    for line in lines:
        if line != "dir":
            assert (await download(client, f"RETR {line}"))[0] == [150, 226]


@pytest.mark.usefixtures("tree")
@pytest.mark.parametrize("command", ["LIST", "NLST", "MLSD"])
async def test_missing(client: RawClient, command: str) -> None:
    for path in ("missing", "missing/*", "dir/missing", "a.txt/x"):
        assert (await download(client, f"{command} {path}"))[0] == [550]


@pytest.mark.usefixtures("tree")
async def test_name_that_looks_like_a_pattern(client: RawClient, root: Path) -> None:
    (root / "[ab].txt").write_bytes(b"odd")
    assert await listed(client, "NLST [ab].txt") == ["[ab].txt"]


# -- STAT ------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("tree")
@pytest.mark.parametrize(
    ("argument", "code"), [("dir", 212), ("b.txt", 213), ("*.txt", 213), ("missing", 550)]
)
async def test_stat_of_a_path(client: RawClient, argument: str, code: int) -> None:
    assert (await client.command(f"STAT {argument}")).code == code


async def test_stat_of_the_session(client: RawClient) -> None:
    reply = await client.command("STAT")
    assert reply.code == 211
    assert "Logged in as anonymous" in reply.text
    assert "Type image" in reply.text
    assert "Idle" in reply.text


async def test_stat_of_a_name_inside_its_namesake(client: RawClient, root: Path) -> None:
    (root / "d").mkdir()
    (root / "d" / "d").write_bytes(b"")
    assert (await client.command("STAT d")).code == 212


# -- MLST and MLSD ---------------------------------------------------------------------------------


@pytest.mark.usefixtures("tree")
async def test_mlst(client: RawClient) -> None:
    reply = await client.command("MLST b.txt")
    assert reply.code == 250
    facts, _, name = reply.lines[1].partition(" ")
    assert name == "/b.txt"
    assert re.fullmatch(
        r"type=file;modify=20010203040506;perm=rawdf;unique=[0-9a-g]+;unix.mode=0640;size=3;"
        r"|type=file;size=3;modify=20010203040506;perm=rawdf;unique=[0-9a-g]+;unix.mode=0640;",
        facts,
    )
    assert len(reply.lines) == 3
    reply = await client.command("MLST dir")
    assert "type=dir;modify=20010203040506;perm=elcmfdp;" in reply.text
    assert "size=" not in reply.text
    assert (await client.command("MLST")).lines[1].endswith(" /")
    assert (await client.command("MLST missing")).code == 550


@pytest.mark.usefixtures("tree")
async def test_mlsd(client: RawClient) -> None:
    lines = await listed(client, "MLSD")
    assert [line.partition(" ")[2] for line in lines] == ["a.txt", "b.txt", "c.bin", "dir"]
    assert lines == await listed(client, "MLSD /")
    assert [line.partition(" ")[2] for line in await listed(client, "MLSD dir")] == ["inner"]
    # RFC 3659 section 7.2.1: what exists and is no directory is a mistake in the argument.
    assert (await download(client, "MLSD b.txt"))[0] == [501]
    assert (await download(client, "MLSD *.txt"))[0] == [550]


@pytest.mark.usefixtures("tree")
async def test_unique_is_unique(client: RawClient, root: Path) -> None:
    os.link(root / "b.txt", root / "same")
    lines = await listed(client, "MLSD")
    unique = dict(
        (line.partition(" ")[2], re.search("unique=([^;]+)", line)[1])  # type: ignore[index]
        for line in lines
    )
    assert unique["same"] == unique["b.txt"]
    assert len(set(unique.values())) == len(unique) - 1


async def test_permissions_of_a_reader(root: Path) -> None:
    (root / "file").write_bytes(b"abc")
    async with running_server(root, writable=False) as server, raw_session(server) as client:
        assert "perm=r;" in (await client.command("MLST file")).text
        assert "perm=el;" in (await client.command("MLST /")).text


@pytest.mark.usefixtures("tree")
@pytest.mark.parametrize(
    ("options", "granted", "facts"),
    [
        ("type;size;", "type;size;", "type=file;size=3;"),
        ("SIZE;Type", "type;size;", "type=file;size=3;"),
        ("size;nonsense;", "size;", "size=3;"),
        ("nonsense", "", ""),
        ("", "", ""),
    ],
)
async def test_opts_mlst(client: RawClient, options: str, granted: str, facts: str) -> None:
    assert f" MLST {ALL_FACTS.replace(';', '*;')}" in _feat(await client.command("FEAT"))
    reply = await client.command(f"OPTS MLST {options}".rstrip())
    assert (reply.code, reply.text) == (200, f"MLST OPTS {granted}".rstrip())
    assert (await client.command("MLST b.txt")).lines[1] == f"{facts} /b.txt"
    assert f"{facts} b.txt" in await listed(client, "MLSD")


def _feat(reply: object) -> list[str]:
    return [f" {line}" for line in reply.lines]  # type: ignore[attr-defined]


async def test_ten_thousand_entries(client: RawClient, root: Path) -> None:
    expected = [f"file-{number:05}" for number in range(10_000)]
    for name in expected:
        (root / name).touch()
    assert await listed(client, "NLST") == expected
    assert len(await listed(client, "LIST")) == 10_000
    assert len(await listed(client, "MLSD")) == 10_000
    assert len(await listed(client, "LIST *9")) == 1_000
    assert (await client.command("STAT /")).code == 501  # the control connection is too dear


async def test_times_and_sizes_that_are_odd(client: RawClient, root: Path) -> None:
    (root / "large").touch()
    os.truncate(root / "large", 10**12)
    (root / "old").touch()
    os.utime(root / "old", (-(10**9), -(10**9)))
    (root / "future").touch()
    os.utime(root / "future", (2**32, 2**32))
    lines = await listed(client, "MLSD")
    assert any("size=1000000000000;" in line for line in lines)
    assert any("modify=19380424221320;" in line for line in lines)
    assert len(await listed(client, "LIST")) == 3
    assert (await client.command("MDTM future")).text == "21060207062816"


# -- times -----------------------------------------------------------------------------------------


async def test_mfmt_and_mdtm(client: RawClient, root: Path) -> None:
    assert await upload(client, "STOR file", b"abc") == [150, 226]
    reply = await client.command("MFMT 20010203040506 file")
    assert (reply.code, reply.text) == (213, "Modify=20010203040506; file")
    assert (await client.command("MDTM file")).text == "20010203040506"
    assert (root / "file").stat().st_mtime == LONG_AGO
    for argument in ("20010203040506", "2001 file", "20011303040506 file", "x file"):
        assert (await client.command(f"MFMT {argument}")).code == 501
    assert (root / "file").stat().st_mtime == LONG_AGO
