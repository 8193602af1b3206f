"""Attacks that need no crowd: paths, links that change, stale restarts, readers that stall."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.support import RawClient
from xftp.protocol.addresses import parse_mpsv_reply
from xftp.server import Server

from .daemon import HOST, MIB, Control, Daemon, running_daemon, wait_until
from .support import codes, download, names, outcome, plain, upload

SECRET = b"of the operator"


@pytest.fixture
def outside(root: Path) -> Path:
    """The directory above the root, with something to steal."""
    (root.parent / "secret").write_bytes(SECRET)
    (root / "d").mkdir()
    (root / "file").write_bytes(b"0123456789")
    return root.parent


@pytest.fixture
async def prepared(outside: Path, client: RawClient) -> AsyncIterator[RawClient]:
    """A session, and afterwards everything outside as it was."""
    yield client
    assert (outside / "secret").read_bytes() == SECRET
    assert names(outside) == ["root", "secret"]


# -- traversal ---------------------------------------------------------------------------------

SPELLINGS = (
    "../secret",
    "/../secret",
    "//../secret",
    "./../secret",
    "d/../../secret",
    "d/..//../secret",
    "d/./.././../secret",
    "../../../../../../../../secret",
    "..//secret",
    "../root/../secret",
    "d/../../root/../secret",
    "/./../secret",
    "/d/../../secret",
    "..\\secret",
    "d\\..\\..\\secret",
    "%2e%2e/secret",
    "..%2fsecret",
    "%2e%2e%2fsecret",
    "..%c0%afsecret",
    ".. /secret",
    "../secret/.",
    "~/../secret",
    "~root/secret",
    "\udcc0\udcae\udcc0\udcae/secret",  # an overlong ".."
    "..\udcff/secret",
)

PATH_COMMANDS = (
    *("SIZE", "MDTM", "MLST", "STAT", "HASH", "XMD5", "DELE", "RMD", "CWD", "RNFR"),
    *("MFMT 20200101000000", "SITE CHMOD 777", "SERI RETR "),
)


@pytest.mark.parametrize("path", SPELLINGS)
async def test_no_spelling_leads_out(prepared: RawClient, path: str) -> None:
    for command in PATH_COMMANDS:
        assert (await prepared.command(f"{command} {path}")).code >= 500, command
    found, content = await download(prepared, f"RETR {path}")
    assert (found, content) == ([550], b"")
    for command in ("LIST", "NLST", "MLSD"):
        assert SECRET not in (await download(prepared, f"{command} {path}"))[1]
    assert (await prepared.command("RNFR file")).code == 350
    await prepared.command(f"RNTO {path}")  # somewhere inside, or nowhere
    await upload(prepared, f"STOR {path}", b"x")
    await upload(prepared, f"APPE {path}", b"x")
    await prepared.command(f"MKD {path}")


# -- links that change -------------------------------------------------------------------------


async def test_a_directory_that_becomes_a_link_during_an_upload(
    prepared: RawClient, root: Path, outside: Path
) -> None:
    """What arrives goes where the upload began, though its name leads elsewhere now."""
    data = await plain(prepared)
    prepared.send("STOR d/new")
    assert await codes(prepared, 1) == [150]
    (root / "d").rename(root / "moved")
    (root / "d").symlink_to(outside)
    await data.finish(b"content")
    assert await codes(prepared, 1) == [226]
    assert (root / "moved" / "new").read_bytes() == b"content"


async def test_a_target_that_becomes_a_link_during_an_upload(
    prepared: RawClient, root: Path, outside: Path
) -> None:
    data = await plain(prepared)
    prepared.send("STOR d/new")
    assert await codes(prepared, 1) == [150]
    (root / "d" / "new").symlink_to(outside / "secret")
    await data.finish(b"content")
    assert await codes(prepared, 1) == [226]
    assert not (root / "d" / "new").is_symlink()
    assert (root / "d" / "new").read_bytes() == b"content"


async def test_a_partial_file_that_is_a_link(
    prepared: RawClient, root: Path, outside: Path
) -> None:
    """Somebody else of the machine has put it there beforehand."""
    (root / "new.xftp.part").symlink_to(outside / "secret")
    (root / "new.xftp.journal").symlink_to(outside / "secret")
    assert (await upload(prepared, "STOR new", b"content"))[-1] >= 450
    await prepared.command("DELE new")


async def test_the_current_directory_that_becomes_a_link(
    prepared: RawClient, root: Path, outside: Path
) -> None:
    assert (await prepared.command("CWD d")).code == 250
    (root / "d").rmdir()
    (root / "d").symlink_to(outside)
    assert (await download(prepared, "RETR secret"))[0] == [550]
    assert SECRET not in (await download(prepared, "LIST"))[1]
    assert await upload(prepared, "STOR secret", b"x") == [550]


# -- stale restarts ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "between",
    [
        ["RETR missing"],
        ["STOR missing/new"],
        ["LIST missing"],
        ["CWD d", "CDUP"],
        ["USER anonymous", "PASS x", "TYPE I"],
        ["REIN", "USER anonymous", "PASS x", "TYPE I"],
        ["DELE missing"],
        ["DANCE"],
        ["RANG 1 0"],
    ],
)
async def test_a_restart_is_not_for_later(
    prepared: RawClient, root: Path, between: list[str]
) -> None:
    """REST is for the command behind it: no other transfer begins in the middle."""
    assert (await prepared.command("REST 4")).code == 350
    for line in between:
        await prepared.command(line)
    if between == ["DANCE"]:  # nothing was done, so nothing is forgotten
        await prepared.command("REST 0")
    assert await download(prepared, "RETR file") == ([150, 226], b"0123456789")
    assert await upload(prepared, "STOR file", b"abc") == [150, 226]
    assert (root / "file").read_bytes() == b"abc"


async def test_a_restart_is_used_up(prepared: RawClient, root: Path) -> None:
    assert (await prepared.command("REST 4")).code == 350
    assert await download(prepared, "RETR file") == ([150, 226], b"456789")
    assert await download(prepared, "RETR file") == ([150, 226], b"0123456789")
    assert (await prepared.command("REST 4")).code == 350
    data = await plain(prepared)
    prepared.send("RETR file")
    assert await codes(prepared, 1) == [150]
    await data.close()
    await outcome(prepared)
    assert await upload(prepared, "STOR file", b"abc") == [150, 226]
    assert (root / "file").read_bytes() == b"abc"


async def test_a_restart_behind_the_end_of_what_is_there_now(
    prepared: RawClient, root: Path
) -> None:
    os.truncate(root / "file", 3)
    for command in ("RETR file", "STOR file"):
        assert (await prepared.command("REST 4")).code == 350
        await plain(prepared)
        prepared.send(command)
        assert await codes(prepared, 1) == [554]
    assert (root / "file").read_bytes() == b"012"


# -- command injection -------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["RETR", "CWD", "MKD", "SITE", "OPTS", "USER", "HELP", "DANCE"])
@pytest.mark.parametrize("bytes_between", [b"\r", b"\0", b"\xff\xf4", b"\xff\xfb\n", b"\xff\xff"])
async def test_one_line_is_one_command(
    server: Server, prepared: RawClient, root: Path, verb: str, bytes_between: bytes
) -> None:
    prepared.writer.write(verb.encode() + b" x" + bytes_between + b"DELE file\r\nNOOP\r\n")
    replies = [await prepared.reply() for _ in range(2)]
    assert replies[1].code == 200
    assert (root / "file").exists()


async def test_no_reply_has_a_line_of_the_clients(prepared: RawClient, root: Path) -> None:
    """A name with line ends on the disk is a name, and no reply of its own."""
    (root / "a\r\n226 done\r\n").mkdir()
    (root / "link").symlink_to("a\r\n226 done\r\n")
    prepared.send("CWD link", "PWD", "MLST", "MKD sub", "NOOP")
    replies = [await prepared.reply() for _ in range(5)]
    assert replies[-1].code == 200 and 226 not in [reply.code for reply in replies]


# -- readers that stall ------------------------------------------------------------------------


@pytest.fixture
def stalled_daemon(tmp_path: Path) -> Iterator[Daemon]:
    (tmp_path / "file").touch()
    os.truncate(tmp_path / "file", 1 << 30)
    with running_daemon(tmp_path) as daemon:
        with daemon.log_in() as control:
            control.command("EPSV")
        yield daemon


@pytest.mark.parametrize("read_bytes", [0, 2 * MIB])
def test_stalled_readers_of_data(stalled_daemon: Daemon, read_bytes: int) -> None:
    """20 sessions, 8 connections each, that read nothing (more) of a large file."""
    daemon = stalled_daemon
    before = daemon.rss_bytes()
    with contextlib.ExitStack() as stack:
        for _ in range(20):
            control = stack.enter_context(daemon.log_in("127.0.0.4"))
            _begin(stack, control, read_bytes)
        wait_until(lambda: daemon.rss_bytes() - before < 32 * MIB)
        with daemon.log_in("127.0.0.2") as other:
            assert other.command("NOOP")[0] == 200


def _begin(stack: contextlib.ExitStack, control: Control, read_bytes: int) -> None:
    """Begin a download over 8 connections, and read so much of each."""
    endpoints = parse_mpsv_reply(control.command("MPSV")[1])
    connections = []
    for endpoint in endpoints:
        sock = stack.enter_context(socket.socket())
        sock.settimeout(60.0)
        if not read_bytes:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.bind(("127.0.0.4", 0))
        sock.connect((HOST, endpoint.port))
        connections.append(sock)
    control.send("RETR file")
    control.expect(150)
    for sock in connections:
        left = read_bytes // len(connections)
        while left > 0:
            left -= len(sock.recv(min(left, MIB)))
