"""Bytes that were damaged on the way, unseen by TCP: found, and mended or told."""

from __future__ import annotations

import asyncio
import os
import random
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from tests.client.damage import FLIPPED, HERE, MARK, Proxy, damaging
from xftp.client import verify as verify_module
from xftp.client.dialogue import Dialogue
from xftp.client.hashes import Method
from xftp.client.mending import store_range
from xftp.client.options import Options, Verify
from xftp.client.session import Session, connect
from xftp.client.verify import (
    FAN_OUT,
    MOST_RANGES,
    SMALLEST_PART_BYTES,
    Verification,
    divided,
    gathered,
)
from xftp.errors import TransferAborted, VerifyError
from xftp.protocol.hashes import ByteRange
from xftp.protocol.replies import Reply
from xftp.server import Account, Server, Settings
from xftp.server.commands import TABLE
from xftp.server.permissions import Permission
from xftp.transport.kept import working_names

PATH = Path(__file__).parents[2]
SIZE = 3_000_000
MARKS = range(100_000, SIZE, 500_000)


def marked() -> bytes:
    """Give content with marks that the proxy damages; in the middle of records."""
    content = bytearray(random.Random(7).randbytes(SIZE))
    for at in MARKS:
        start = at // 8192 * 8192 + 4000
        content[start : start + len(MARK)] = MARK
    return bytes(content)


CONTENT = marked()


@pytest.fixture
def root(root: Path) -> Path:
    (root / "file").write_bytes(CONTENT)
    return root


@pytest.fixture
def here(here: Path) -> Path:
    (here / "source").write_bytes(CONTENT)
    return here


@pytest.fixture
async def server(root: Path) -> AsyncIterator[Server]:
    dropbox = frozenset({Permission.WRITE, Permission.LIST})
    accounts = (
        Account("anonymous", root, writable=True),
        Account("dropbox", root, granted=dropbox),
    )
    running = Server(Settings(accounts))
    await running.start("127.0.0.1", 0)
    yield running
    await running.close()


@pytest.fixture
async def proxy(server: Server) -> AsyncIterator[Proxy]:
    async with damaging(server.server_port) as running:
        yield running


class Told(list[str]):
    """What the user was told."""

    def about(self, word: str) -> list[str]:
        return [sentence for sentence in self if word in sentence]


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def options(told: Told) -> Callable[..., Options]:
    def make(connections: int = 1, verify: Verify = "auto") -> Options:
        return Options(connections=connections, verify=verify, notice=told.append)

    return make


def url(proxy: Proxy, user: str = "anonymous") -> str:
    return f"ftp://{user}:x@{HERE}:{proxy.port}/"


def names(path: Path) -> list[str]:
    return sorted(each.name for each in path.iterdir())


async def move(session: Session, way: str, here: Path) -> None:
    if way == "down":
        await session.get("file", here / "copy")
    else:
        await session.put(here / "source", "copy")


WAYS = pytest.mark.parametrize(
    ("way", "connections"), [(w, n) for w in ("down", "up") for n in (1, 4)]
)


@WAYS
async def test_the_proxy_damages_what_nobody_verifies(
    proxy: Proxy, options: Callable[..., Options], root: Path, here: Path, way: str,
    connections: int,
) -> None:  # fmt: skip
    proxy.damage.times = 1
    async with connect(url(proxy), options=options(connections, "never")) as session:
        await move(session, way, here)
    copied = (here if way == "down" else root) / "copy"
    assert proxy.damage.flipped == 1
    assert copied.read_bytes().count(FLIPPED) == 1


@WAYS
@pytest.mark.parametrize("times", [0, 1, 3])
async def test_what_was_damaged_is_mended(
    proxy: Proxy, options: Callable[..., Options], root: Path, here: Path, told: Told, way: str,
    connections: int, times: int,
) -> None:  # fmt: skip
    proxy.damage.times = times
    async with connect(url(proxy), options=options(connections)) as session:
        await move(session, way, here)
        assert await session.size("file") == SIZE  # replies are still in step
    copied = (here if way == "down" else root) / "copy"
    assert proxy.damage.flipped == times
    assert copied.read_bytes() == CONTENT
    assert int(copied.stat().st_mtime) == int((root / "file").stat().st_mtime) or way == "up"
    assert bool(told.about("mended")) == bool(times)
    # Records have a head, the last ones are sent again over idle connections; and what was mended.
    most = SIZE * 1.3 + times * SMALLEST_PART_BYTES
    assert proxy.damage.data_bytes <= most
    for path in (root, here):
        assert not [name for name in names(path) if ".xftp." in name]


@WAYS
async def test_what_cannot_be_mended_is_no_success(
    proxy: Proxy, options: Callable[..., Options], root: Path, here: Path, way: str,
    connections: int,
) -> None:  # fmt: skip
    proxy.damage.times = 1_000_000
    async with connect(url(proxy), options=options(connections)) as session:
        expected = r"differs from the original .+ could not be mended"
        with pytest.raises(VerifyError, match=expected) as raised:
            await move(session, way, here)
        # Nothing wrong is left here; what is left on the server is said.
        assert ("still on the server as copy" in str(raised.value)) == (way == "up")
        assert ("copy" in names(root)) == (way == "up")
        assert await session.size("file") == SIZE
    assert names(here) == ["source"]
    assert not [name for name in names(root) if ".xftp." in name]


@pytest.mark.parametrize("method", [Method("HASH", "SHA-256", False), Method("XMD5", "MD5", False)])
@WAYS
async def test_without_ranges_all_is_moved_again_once(
    proxy: Proxy, options: Callable[..., Options], root: Path, here: Path, told: Told, way: str,
    connections: int, method: Method, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(verify_module, "choose_method", lambda dialogue: method)
    proxy.damage.times = 1
    async with connect(url(proxy), options=options(connections)) as session:
        await move(session, way, here)
        assert ((here if way == "down" else root) / "copy").read_bytes() == CONTENT
        assert told.about("again")
        proxy.damage.times = 1_000_000
        with pytest.raises(VerifyError, match="differs"):
            if way == "down":
                await session.get("file", here / "other")
            else:
                await session.put(here / "source", "other")
    assert "other" not in names(here)


async def test_what_was_kept_of_a_cut_download_is_compared_too(
    proxy: Proxy, options: Callable[..., Options], here: Path, told: Told
) -> None:
    kept = bytearray(CONTENT[:1_500_000])
    kept[1_000_000] ^= 1
    (here / working_names("copy")[0]).write_bytes(kept)
    async with connect(url(proxy), options=options(4)) as session:
        await session.get("file", here / "copy", existing="resume")
    assert (here / "copy").read_bytes() == CONTENT
    assert told.about("mended")
    assert proxy.damage.data_bytes < SIZE - 700_000


async def test_all_kept_is_compared_before_it_gets_its_name(
    proxy: Proxy, options: Callable[..., Options], here: Path, told: Told
) -> None:
    kept = bytearray(CONTENT)
    for at in range(0, SIZE, 300_000):
        kept[at] ^= 1
    (here / working_names("copy")[0]).write_bytes(kept)
    async with connect(url(proxy), options=options()) as session:
        await session.get("file", here / "copy", existing="resume")
    assert (here / "copy").read_bytes() == CONTENT
    assert told.about("mended")


async def test_a_cut_while_mending_keeps_what_there_is(
    proxy: Proxy, options: Callable[..., Options], here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def cut(*_: object) -> None:
        raise TransferAborted("cut")

    proxy.damage.times = 1
    async with connect(url(proxy), options=options()) as session:
        with monkeypatch.context() as patched:
            patched.setattr("xftp.client.download.fetch_range", cut)
            with pytest.raises(TransferAborted):
                await session.get("file", here / "copy")
        assert names(here) != ["source"]
        await session.get("file", here / "copy", existing="resume")
    assert (here / "copy").read_bytes() == CONTENT
    assert proxy.damage.data_bytes < SIZE * 1.3


async def test_an_upload_cut_while_mending_is_compared_when_it_is_tried_again(
    proxy: Proxy, options: Callable[..., Options], root: Path, here: Path, told: Told,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """All of it is there then, but not all of it right."""
    tries = []

    async def cut_once(*arguments: object) -> None:
        tries.append(arguments)
        if len(tries) == 1:
            raise TransferAborted("cut")
        await store_range(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr("xftp.client.upload.store_range", cut_once)
    proxy.damage.times = 1
    chosen = replace(options(), retries=1, retry_wait_s=0)
    async with connect(url(proxy), options=chosen) as session:
        await session.put(here / "source", "copy")
    assert (root / "copy").read_bytes() == CONTENT
    assert len(tries) == 2
    assert told.about("still on the server as copy")
    assert proxy.damage.data_bytes < SIZE * 1.3


async def test_parts_are_stored_on_servers_of_our_kind_only(
    proxy: Proxy, options: Callable[..., Options], root: Path, here: Path, told: Told,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Elsewhere RANG may be for RETR alone, and STOR would then replace the file by the part."""
    monkeypatch.setattr(Dialogue, "announces_connections", False)
    proxy.damage.times = 1
    async with connect(url(proxy), options=options()) as session:
        await session.put(here / "source", "copy")
    assert (root / "copy").read_bytes() == CONTENT
    assert told.about("sending it again")


async def test_streams(proxy: Proxy, options: Callable[..., Options], root: Path) -> None:
    """What was handed on cannot be mended: it is an error."""
    async with connect(url(proxy), options=options()) as session:
        for times in (0, 1):
            proxy.damage.times, got = times, bytearray()
            produce = iter([CONTENT[:1_000_000], CONTENT[1_000_000:], b""]).__next__
            if not times:
                await session.get_stream("file", got.extend)
                assert got == CONTENT
                await session.put_stream(produce, "copy")
                continue
            with pytest.raises(VerifyError, match="what came differs"):
                await session.get_stream("file", got.extend)
            proxy.damage.times = 2
            with pytest.raises(VerifyError):
                await session.put_stream(produce, "copy")


async def test_a_file_that_grows_meanwhile(
    proxy: Proxy, options: Callable[..., Options], root: Path, here: Path, told: Told,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """What was the whole file when it was sent is compared with that part of the longer one."""
    ask_early = Verification.ask_early

    def grow_first(self: Verification, size: int | None) -> None:
        with (root / "file").open("ab") as file:
            file.write(b"more")
        ask_early(self, size)

    monkeypatch.setattr(Verification, "ask_early", grow_first)
    async with connect(url(proxy), options=options()) as session:
        await session.get("file", here / "copy")
    assert (here / "copy").read_bytes() == CONTENT
    assert not told


@pytest.mark.parametrize("reply", ["213 what", "213 SHA-256 0-9 abc file", "550 no", "450 busy"])
async def test_an_answer_that_is_none(
    server: Server, options: Callable[..., Options], here: Path, told: Told, reply: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    code, _, text = reply.partition(" ")

    async def answer(session: object, argument: str) -> Reply:
        return Reply(int(code), (text,))

    row = replace(TABLE["HASH"], handler=answer)
    monkeypatch.setitem(TABLE, "HASH", row)
    address = f"ftp://127.0.0.1:{server.server_port}/"
    async with connect(address, options=options()) as session:
        await session.get("file", here / "copy")
        assert told.about("not verified")
    async with connect(address, options=options(4, "always")) as session:
        with pytest.raises(VerifyError, match="cannot be verified"):
            await session.get("file", here / "other")
    assert names(here) == ["copy", "source"]


# -- when to verify ----------------------------------------------------------------------------


async def test_a_server_that_may_not_tell(
    proxy: Proxy, options: Callable[..., Options], root: Path, here: Path, told: Told
) -> None:
    async with connect(url(proxy, "dropbox"), options=options()) as session:
        await session.put(here / "source", "one")
        await session.put(here / "source", "two")
    assert len(told.about("not verified")) == 1  # and not for every file
    assert (root / "two").read_bytes() == CONTENT
    async with connect(url(proxy, "dropbox"), options=options(1, "always")) as session:
        with pytest.raises(VerifyError, match="cannot be verified"):
            await session.put(here / "source", "three")


@pytest.mark.parametrize(
    ("features", "wish", "method"),
    [
        ({}, "auto", None),
        ({"HASH": "SHA-256*;MD5", "RANG": "STREAM"}, "never", None),
        ({"HASH": "SHA-256*;MD5", "RANG": "STREAM"}, "auto", Method("HASH", "SHA-256", True)),
        ({"HASH": "MD5*;SHA-1"}, "auto", Method("HASH", "SHA-1", False)),
        ({"HASH": "WHIRLPOOL*", "XCRC": ""}, "auto", None),
        ({"HASH": "WHIRLPOOL*", "XCRC": ""}, "always", Method("XCRC", "CRC32", False)),
        ({"XCRC": "", "XSHA256": ""}, "always", Method("XSHA256", "SHA-256", False)),
        ({"XCRC": "", "XSHA256": ""}, "auto", None),
    ],
)
async def test_choice(
    proxy: Proxy, features: dict[str, str], wish: Verify, method: Method | None
) -> None:
    async with connect(url(proxy), options=Options(verify=wish)) as session:
        session._dialogue.features = features
        assert verify_module.choose_method(session._dialogue) == method
        if wish == "always":
            session._dialogue.features = {}
            with pytest.raises(VerifyError, match="cannot tell the hash"):
                verify_module.choose_method(session._dialogue)


async def test_who_insists_gets_nothing_unverified(
    proxy: Proxy, here: Path, monkeypatch: pytest.MonkeyPatch, options: Callable[..., Options]
) -> None:
    monkeypatch.setattr("xftp.client.hashes.algorithms", lambda: ())
    monkeypatch.setattr("xftp.client.hashes.X_COMMANDS", {})
    async with connect(url(proxy), options=options(4, "always")) as session:
        with pytest.raises(VerifyError):
            await session.get("file", here / "copy")
        with pytest.raises(VerifyError):
            await session.put(here / "source", "copy")
        assert await session.size("file") == SIZE
    assert names(here) == ["source"]


async def test_ascii_is_not_verified(
    proxy: Proxy, here: Path, root: Path, options: Callable[..., Options]
) -> None:
    (root / "text").write_bytes(b"one\ntwo\n")
    async with connect(url(proxy), options=options()) as session:
        await session.set_type("A")
        await session.get("text", here / "text")
    assert (here / "text").read_bytes() == b"one\ntwo\n"


# -- parts -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "part",
    [
        ByteRange(0, 1),
        ByteRange(0, SMALLEST_PART_BYTES),
        ByteRange(0, SMALLEST_PART_BYTES + 1),
        ByteRange(SMALLEST_PART_BYTES, 10**12 + 7),
    ],
)
def test_divided(part: ByteRange) -> None:
    parts = divided(part)
    assert parts[0].start == part.start and parts[-1].end == part.end
    assert all(one.end == other.start for one, other in pairwise(parts))
    assert len(parts) <= FAN_OUT
    assert (len(parts) == 1) == (part.size <= SMALLEST_PART_BYTES)
    assert all(each.start % SMALLEST_PART_BYTES == 0 for each in parts)


def test_gathered() -> None:
    assert gathered([]) == []
    apart = [ByteRange(2 * at, 2 * at + 1) for at in range(MOST_RANGES)]
    assert gathered(apart) == apart
    assert gathered([ByteRange(0, 5), ByteRange(5, 9), ByteRange(10, 11)]) == [
        ByteRange(0, 9),
        ByteRange(10, 11),
    ]
    assert gathered([*apart, ByteRange(100, 200)]) == [ByteRange(0, 200)]


# -- the command -------------------------------------------------------------------------------


async def test_the_command_tells_by_its_exit_status(proxy: Proxy, here: Path, root: Path) -> None:
    async def run(*arguments: str) -> tuple[int, str]:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "xftp.cli.client", *arguments),
            cwd=here,
            env=os.environ | {"PYTHONPATH": str(PATH), "HOME": str(here)},
            stderr=asyncio.subprocess.PIPE,
        )
        _, said = await process.communicate()
        assert process.returncode is not None
        return process.returncode, said.decode()

    address = f"{url(proxy)}file"
    proxy.damage.times = 1
    status, said = await run("get", "--no-memory", "-o", "mended", address)
    assert (status, "mended" in said) == (0, True)
    assert (here / "mended").read_bytes() == CONTENT
    proxy.damage.times = 1_000_000
    status, said = await run("get", "--no-memory", "-o", "wrong", address)
    assert (status, "could not be mended" in said) == (1, True)
    assert not (here / "wrong").exists()
    status, said = await run("put", "--no-memory", "--verify", "source", f"{url(proxy)}sent")
    assert (status, "could not be mended" in said) == (1, True)
    assert "the wrong file is still on the server as sent" in said
    status, said = await run("get", "--no-memory", "--no-verify", "-o", "wrong", address)
    assert (status, (here / "wrong").read_bytes().count(FLIPPED)) == (0, len(MARKS))
