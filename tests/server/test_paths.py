"""Names: none leads out of the root, and every one that a file can have is served."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import RawClient
from xftp.server import Server, beneath
from xftp.server.filesystem import absolute

from .support import (
    codes,
    dealt,
    download,
    multiple,
    names,
    pattern,
    plain,
    upload,
    upload_records,
)

SECRET = b"secret"


@pytest.fixture(params=["openat2", "walked"], autouse=True)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """How paths are resolved: by the kernel, and as on one that has no openat2."""
    if request.param == "walked":
        monkeypatch.setattr(beneath, "open_directory", lambda root, path: None)


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """The directory that holds the root, and a secret."""
    (tmp_path / "secret").write_bytes(SECRET)
    return tmp_path


@pytest.mark.parametrize(
    ("current", "path", "expected"),
    [
        ("/", "a", "/a"),
        ("/", "..", "/"),
        ("/", "../../a", "/a"),
        ("/d", "..", "/"),
        ("/d", "../e/./f//g/", "/e/f/g"),
        ("/d", "/a", "/a"),
        ("/d", "//a", "/a"),
        ("/", "", "/"),
        ("/d", ".", "/d"),
    ],
)
def test_absolute(current: str, path: str, expected: str) -> None:
    assert absolute(current, path) == expected


async def test_dots_stay_inside(client: RawClient, outside: Path, root: Path) -> None:
    for path in (
        "../secret",
        "/../secret",
        "../../../../secret",
        f"{outside}/secret",
        "d/../../secret",
    ):
        found, content = await download(client, f"RETR {path}")
        assert (found, content) == ([550], b"")
        assert await upload(client, "STOR ../secret", b"x") == [150, 226]
        (root / "secret").unlink()
    assert (outside / "secret").read_bytes() == SECRET
    assert (await client.command("CWD ..")).code == 250
    assert (await client.command("CDUP")).code == 200
    assert '"/"' in (await client.command("PWD")).text


OUTSIDE = ("../secret", "{tmp}/secret", "..", "{tmp}", "d/../../secret", "chain", "/etc/passwd")


@pytest.mark.parametrize("target", OUTSIDE)
async def test_link_that_leads_out(
    client: RawClient, root: Path, outside: Path, target: str
) -> None:
    (root / "d").mkdir()
    (root / "chain").symlink_to("d/../../secret")
    (root / "out").symlink_to(target.format(tmp=outside))
    assert (await download(client, "RETR out"))[0] == [550]
    assert (await download(client, "RETR out/secret"))[0] == [550]
    assert await upload(client, "STOR out", b"x") == [550]
    assert await upload(client, "APPE out", b"x") == [550]
    assert await upload(client, "STOR out/new", b"x") == [550]
    for command in (
        "CWD out", "SIZE out", "MDTM out", "MLST out", "STAT out", "MKD out/new", "DELE out/secret",
        "RNFR out/secret", "MFMT 20200101000000 out", "SITE CHMOD 777 out", "RMD out",
    ):  # fmt: skip
        assert (await client.command(command)).code == 550, command
    for command in ("LIST", "NLST", "MLSD"):
        _, listing = await download(client, command)
        assert b"out" not in listing
        assert b"d\r\n" in listing
    assert (outside / "secret").read_bytes() == SECRET
    assert names(outside) == ["root", "secret"]
    # The link itself is inside, and may be renamed and deleted.
    assert (await client.command("RNFR out")).code == 350
    assert (await client.command("RNTO d/out")).code == 250
    assert (await client.command("DELE d/out")).code == 250


async def test_link_inside(client: RawClient, root: Path) -> None:
    (root / "d").mkdir()
    (root / "d" / "file").write_bytes(b"abc")
    for name, target in (
        ("relative", "d/file"),
        ("absolute", str(root / "d" / "file")),
        ("d/up", "../d/./file"),
        ("chain", "relative"),
    ):
        (root / name).symlink_to(target)
        assert await download(client, f"RETR {name}") == ([150, 226], b"abc")
        assert (await client.command(f"SIZE {name}")).text == "3"
    (root / "dirlink").symlink_to("d")
    assert await download(client, "RETR dirlink/file") == ([150, 226], b"abc")
    assert (await client.command("CWD dirlink")).code == 250
    assert b"file" in (await download(client, "LIST"))[1]
    assert await upload(client, "STOR ../chain", b"new") == [150, 226]
    assert (root / "d" / "file").read_bytes() == b"new"
    assert (root / "chain").is_symlink()


async def test_a_race_leads_nowhere(client: RawClient, outside: Path, root: Path) -> None:
    """A directory that is a link out of the root every other moment."""
    (root / "real").mkdir()
    (root / "real" / "secret").write_bytes(b"inside")
    (root / "link").symlink_to(outside)
    ends = threading.Event()

    def swap() -> None:
        while not ends.is_set():
            for name in ("real", "link"):
                os.rename(root / name, root / "d")
                os.rename(root / "d", root / name)

    swapping = asyncio.create_task(asyncio.to_thread(swap))
    try:
        got: list[bytes] = []
        while len(got) < 100 or b"inside" not in got:
            got.append((await download(client, "RETR d/secret"))[1])
    finally:
        ends.set()
        await swapping
    assert set(got) <= {b"", b"inside"}


async def test_link_loops_and_dangling_links(client: RawClient, root: Path) -> None:
    (root / "loop").symlink_to("loop")
    (root / "a").symlink_to("b")
    (root / "b").symlink_to("a/x")
    (root / "dangling").symlink_to("nothing")
    for name in ("loop", "a", "b", "loop/x", "dangling"):
        assert (await download(client, f"RETR {name}"))[0] == [550]
        assert (await client.command(f"CWD {name}")).code == 550
    assert (await download(client, "LIST")) == ([150, 226], b"")
    assert (await client.command("DELE loop")).code == 250
    assert await upload(client, "STOR dangling", b"abc") == [150, 226]
    assert (root / "nothing").read_bytes() == b"abc"


async def test_delete_of_a_link_leaves_its_target(client: RawClient, root: Path) -> None:
    (root / "file").write_bytes(b"abc")
    (root / "link").symlink_to("file")
    assert (await client.command("DELE link")).code == 250
    assert names(root) == ["file"]


# -- odd names -------------------------------------------------------------------------------------

ODD_NAMES = [
    b"with space",
    b" leading",
    b"trailing ",
    b"caf\xc3\xa9",
    b"caf\xe9",
    b"\xff\xfe\xfd",
    b"\x01\x7f\x1b[1m",
    b'quote"d',
    b"-la",
    b"*?[x]",
    b"~",
    b"%s{0}",
    b"x" * 255,
    b"\xc3\xa9" * 127,
]


@pytest.mark.parametrize("name", ODD_NAMES)
async def test_odd_name_there_and_back(client: RawClient, root: Path, name: bytes) -> None:
    text = os.fsdecode(name)
    wire_name = name.replace(b"\xff", b"\xff\xff")  # Telnet doubles it
    shown = wire_name.decode("utf-8", "surrogateescape")
    assert await upload(client, f"STOR {shown}", b"abc") == [150, 226]
    content = pattern(20_000)
    assert await upload_records(client, f"STOR {shown}", dealt(content, 2), size=20_000) == [
        150,
        226,
    ]
    assert os.listdir(os.fsencode(root)) == [name]
    assert await download(client, f"RETR {shown}") == ([150, 226], content)
    assert (await client.command(f"SIZE {shown}")).text == "20000"
    assert (await client.command(f"MLST {shown}")).lines[1].endswith(f" /{text}")
    for command in ("LIST", "NLST", "MLSD"):
        listing = (await download(client, command))[1]
        assert listing.endswith(name + b"\r\n")
    assert (await client.command(f"RNFR {shown}")).code == 350
    assert (await client.command("RNTO plain")).code == 250
    assert (await client.command("RNFR plain")).code == 350
    assert (await client.command(f"RNTO {shown}")).code == 250
    assert (await client.command(f"DELE {shown}")).code == 250
    assert (await client.command(f"MKD {shown}")).code == 257
    assert (await client.command(f"CWD {shown}")).code == 250
    quoted = text.replace('"', '""')
    assert f'"/{quoted}"' in (await client.command("PWD")).text
    assert (await client.command(f"RMD /{shown}")).code == 250


async def test_cut_upload_of_a_long_name(client: RawClient, root: Path) -> None:
    """The names of partial file and journal fit all the same."""
    for size in range(236, 256):
        name = "x" * size
        stream = dealt(pattern(3 * 8192), 3)
        said = await upload_records(client, f"STOR {name}", [stream[0], stream[2]], size=3 * 8192)
        assert said == [150, 426]
        assert (await client.command(f"SIZE {name}")).text == "8192"
        assert (await client.command(f"DELE {name}")).code == 250
        assert names(root) == []


async def test_name_with_a_line_end_is_not_listed(client: RawClient, root: Path) -> None:
    for name in ("a\nb", "a\rb", "227 evil\r\n"):
        (root / name).write_bytes(b"x")
    (root / "good").write_bytes(b"x")
    for command in ("LIST", "NLST", "MLSD"):
        listing = (await download(client, command))[1]
        assert listing.count(b"\r\n") == 1
        assert b"good" in listing
    reply = await client.command("STAT /")
    assert len(reply.lines) == 3


async def test_too_long_names(client: RawClient, root: Path) -> None:
    name = "x" * 256
    assert (await download(client, f"RETR {name}"))[0] == [553]
    for command, code in (("MKD", 553), ("CWD", 553), ("SIZE", 553), ("RNFR", 553)):
        assert (await client.command(f"{command} {name}")).code == code
    deep = "/".join(["d" * 200] * 30)
    assert (await client.command(f"CWD {deep}")).code == 550


# -- what cannot be read ---------------------------------------------------------------------------


@pytest.fixture
def nobody(root: Path) -> Iterator[None]:
    """Let the whole process be an ordinary user for a while."""
    if os.geteuid() != 0:
        pytest.skip("becoming another user needs root")
    os.seteuid(65534)
    yield
    os.seteuid(0)


@pytest.mark.root
async def test_unreadable(client: RawClient, root: Path, request: pytest.FixtureRequest) -> None:
    (root / "file").write_bytes(b"abc")
    (root / "file").chmod(0)
    (root / "closed").mkdir(0o700)
    (root / "closed" / "file").write_bytes(b"abc")
    (root / ".").chmod(0o755)
    request.getfixturevalue("nobody")  # from here on, since the session is made by root
    for name in ("file", "closed/file"):
        assert await download(client, f"RETR {name}") == ([550], b"")
    assert (await client.command("CWD closed")).code == 550
    assert (await download(client, "LIST closed"))[0] == [550]
    assert await upload(client, "STOR new", b"x") == [550]
    assert await upload(client, "STOR closed/new", b"x") == [550]
    for command in ("MKD new", "DELE file", "SITE CHMOD 777 file", "MFMT 20200101000000 file"):
        assert (await client.command(command)).code == 550, command
    assert (await client.command("SIZE file")).text == "3"


@pytest.mark.parametrize("kind", ["fifo", "socket", "device"])
async def test_special_files(client: RawClient, root: Path, kind: str) -> None:
    if kind == "fifo":
        os.mkfifo(root / "special")
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as sock:
            sock.bind(str(root / "special"))
    else:
        try:
            os.mknod(root / "special", 0o20666, os.makedev(1, 5))
        except PermissionError:
            pytest.skip("making a device needs root")
    assert (await download(client, "RETR special"))[0] == [550]
    assert (await client.command("SIZE special")).code == 550
    assert b"special" in (await download(client, "LIST"))[1]
    assert "type=OS.unix=special" in (await client.command("MLST special")).text


async def test_failing_read(client: RawClient, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "file").write_bytes(pattern(100_000))

    def fail(*_: object) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patched:
        patched.setattr(os, "preadv", fail)
        patched.setattr(os, "sendfile", fail)
        for count in (0, 2):
            connections = await multiple(client, count) if count else [await plain(client)]
            client.send("RETR file")
            assert await codes(client, 2) == [150, 451]
            for data in connections:
                with pytest.raises(ConnectionResetError):
                    await data.read()
    assert await download(client, "RETR file") == ([150, 226], pattern(100_000))


async def test_file_that_shrinks(client: RawClient, server: Server, root: Path) -> None:
    """What was promised with the size cannot be kept: that is told."""
    with (root / "file").open("wb") as file:
        file.truncate(1 << 28)
    data = await plain(client)
    data.writer.transport.pause_reading()
    client.send("RETR file")
    assert await codes(client, 1) == [150]
    os.truncate(root / "file", 1 << 20)
    data.writer.transport.resume_reading()
    with pytest.raises(ConnectionResetError):
        await data.read()
    assert await codes(client, 1) == [451]
