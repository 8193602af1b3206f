"""Mirrors between this machine and our own server, and servers that refuse sessions."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support import running_server
from xftp.client.mirror import Mirror
from xftp.client.mirror_moves import Order, Summary
from xftp.client.mirroring import Plan, Tree
from xftp.client.options import Options
from xftp.client.patterns import Selection
from xftp.client.pool import SessionPool, Work
from xftp.client.session import Session, open_session
from xftp.errors import (
    ConnectError,
    FileError,
    LoginError,
    NoSpaceError,
    ReplyError,
    XftpError,
)
from xftp.server import Server
from xftp.server.limits import Limit, Limits
from xftp.transport.partial import PartialFile

WHEN = 1_600_000_000
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""Where files cost nothing."""


class Seen:
    """An observer that remembers."""

    def __init__(self) -> None:
        self.actions: list[tuple[str, str]] = []
        self.failures: list[tuple[str, str]] = []
        self.bytes = 0

    def planned(self, work: Plan, source: Tree) -> None:
        pass

    def moved(self, size: int) -> None:
        self.bytes += size

    def done(self, action: str, path: str, size: int | None = None) -> None:
        self.actions.append((action, path))

    def failed(self, action: str, path: str, error: Exception) -> None:
        self.failures.append((action, path))


def fill(root: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        os.utime(path, (WHEN, WHEN))


def contents(root: Path) -> dict[str, bytes | None]:
    """Give what is below a directory; None stands for a directory."""
    return {
        str(path.relative_to(root)): None if path.is_dir() else path.read_bytes()
        for path in root.rglob("*")
    }


FILES = {
    "one": b"1",
    "empty": b"",
    "a/b/c/deep": b"deep" * 5000,
    "a/ leading space": b"s",
    "a/-dash": b"d",
    "a/\udce4\udcfe": b"not UTF-8",
    "a/ä": b"UTF-8",
}


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    """Give the root of the server, and a directory here."""
    for name in ("root", "here"):
        (tmp_path / name).mkdir()
    return tmp_path / "root", tmp_path / "here"


@pytest.fixture
async def server(places: tuple[Path, Path]) -> AsyncIterator[Server]:
    async with running_server(places[0]) as running:
        yield running


async def mirror(
    server: Server, order: Order, *, most: int = 3, **options: Any
) -> tuple[Summary, Seen]:
    url = f"ftp://127.0.0.1:{server.server_port}/"
    settings = Options(**options)

    async def open_one() -> Session:
        return await open_session(url, options=settings)

    pool = SessionPool(open_one, most)
    seen = Seen()
    try:
        return await Mirror(order, pool, seen).run(), seen
    finally:
        await pool.close()


def down(here: Path, remote: str = "", **values: Any) -> Order:
    return replace(Order(here, remote, "download"), **values)


def up(here: Path, remote: str = "", **values: Any) -> Order:
    return replace(Order(here, remote, "upload"), **values)


async def test_down_and_again(server: Server, places: tuple[Path, Path]) -> None:
    root, here = places
    fill(root / "tree", FILES)
    (root / "tree" / "nothing").mkdir()
    first, seen = await mirror(server, down(here / "copy", "tree"))
    assert contents(here / "copy") == contents(root / "tree")
    assert (here / "copy" / "one").stat().st_mtime == WHEN
    assert (first.moved, first.directories, first.failed) == (len(FILES), 4, 0)
    assert first.bytes == seen.bytes == sum(map(len, FILES.values()))
    second, seen = await mirror(server, down(here / "copy", "tree"))
    assert (second.moved, second.unchanged, seen.actions) == (0, len(FILES), [])


async def test_up_and_again(server: Server, places: tuple[Path, Path]) -> None:
    root, here = places
    fill(here, FILES)
    first, _ = await mirror(server, up(here, "new/place"))
    assert contents(root / "new" / "place") == contents(here)
    assert (root / "new" / "place" / "one").stat().st_mtime == WHEN
    assert first.failed == 0
    second, seen = await mirror(server, up(here, "new/place"))
    assert (second.moved, seen.actions) == (0, [])


@pytest.mark.parametrize("direction", ["download", "upload"])
async def test_only_what_changed(server: Server, places: tuple[Path, Path], direction: str) -> None:
    root, here = places
    source, target = (root, here) if direction == "download" else (here, root)
    for place in places:
        fill(place, {"same": b"same", "size": b"long", "time": b"abcd", "d/gone": b"x"})
    (source / "size").write_bytes(b"longer")
    os.utime(source / "time", (WHEN + 5, WHEN + 5))
    (source / "d" / "gone").unlink()
    (source / "d").rmdir()
    order = replace(up(here), direction=direction)
    summary, seen = await mirror(server, order)
    assert sorted(path for _, path in seen.actions) == ["size", "time"]
    assert (target / "d" / "gone").exists()
    summary, seen = await mirror(server, replace(order, delete=True))
    assert seen.actions == [("delete", "d/gone"), ("delete", "d")]
    assert summary.failed == 0
    assert contents(here) == contents(root)


@pytest.mark.parametrize("direction", ["download", "upload"])
async def test_a_directory_takes_the_place_of_a_file(
    server: Server, places: tuple[Path, Path], direction: str
) -> None:
    root, here = places
    source, target = (root, here) if direction == "download" else (here, root)
    fill(source, {"x/y": b"new", "z": b"file"})
    fill(target, {"x": b"old", "z/old": b"old"})
    order = replace(up(here), direction=direction)
    summary, _ = await mirror(server, order)
    assert summary.failed == 2
    assert (target / "x").read_bytes() == b"old"
    summary, _seen = await mirror(server, replace(order, delete=True))
    assert summary.failed == 0
    assert contents(here) == contents(root)


async def test_contents_are_compared(server: Server, places: tuple[Path, Path]) -> None:
    root, here = places
    fill(root, {"same": b"same", "other": b"abcd"})
    fill(here, {"same": b"same", "other": b"abce"})
    os.utime(here / "same", (5, 5))
    assert (await mirror(server, down(here, checksum=True)))[1].actions == [("fetch", "other")]
    assert contents(here) == contents(root)


async def test_a_dry_run_changes_nothing(server: Server, places: tuple[Path, Path]) -> None:
    root, here = places
    fill(root, {"a/b": b"x"})
    fill(here, {"old": b"x"})
    summary, seen = await mirror(server, down(here, dry_run=True, delete=True))
    assert seen.actions == [("mkdir", "a"), ("fetch", "a/b"), ("delete", "old")]
    assert contents(here) == {"old": b"x"}
    assert summary.dry_run


async def test_what_is_excluded_stays_on_both_sides(
    server: Server, places: tuple[Path, Path]
) -> None:
    root, here = places
    fill(root, {"a.c": b"c", "a.o": b"o", "cache/x": b"x"})
    fill(here, {"b.o": b"o", "old/c.o": b"o"})
    order = down(here, delete=True, selection=Selection((), ("*.o", "cache/")))
    summary, _ = await mirror(server, order)
    assert contents(here) == {"a.c": b"c", "b.o": b"o", "old": None, "old/c.o": b"o"}
    assert summary.failed == 0


async def test_links_are_left_out(server: Server, places: tuple[Path, Path]) -> None:
    root, here = places
    fill(here, {"a/f": b"f"})
    (here / "a" / "link").symlink_to("f")
    (here / "a" / "loop").symlink_to("..")
    summary, _ = await mirror(server, up(here))
    assert summary.left_out == 2
    assert contents(root) == {"a": None, "a/f": b"f"}


async def test_a_link_of_the_server_that_leads_back_is_not_followed(
    server: Server, places: tuple[Path, Path]
) -> None:
    root, here = places
    fill(root, {"a/b/f": b"f"})
    (root / "a" / "b" / "loop").symlink_to("../..")
    (root / "a" / "b" / "up").symlink_to("..")
    await mirror(server, down(here))
    assert contents(here) == {"a": None, "a/b": None, "a/b/f": b"f"}


async def test_nothing_is_written_through_a_link_here(
    server: Server, places: tuple[Path, Path], tmp_path: Path
) -> None:
    root, here = places
    fill(root, {"d/f": b"f"})
    outside = tmp_path / "outside"
    outside.mkdir()
    (here / "d").symlink_to(outside)
    summary, seen = await mirror(server, down(here))
    assert seen.failures == [("fetch", "d")]
    assert contents(outside) == {}
    assert summary.failed == 1


async def test_a_name_that_cannot_be_sent(server: Server, places: tuple[Path, Path]) -> None:
    root, here = places
    fill(here, {"good": b"g", "two\nlines": b"l"})
    fill(root, {"old": b"o"})
    _summary, seen = await mirror(server, up(here, delete=True))
    assert seen.failures == [("list", "two\nlines")]
    assert contents(root) == {"good": b"g", "old": b"o"}  # what is unknown deletes nothing


async def test_what_cannot_be_mirrored_at_all(server: Server, places: tuple[Path, Path]) -> None:
    root, here = places
    fill(root, {"file": b"x"})
    fill(here, {"file": b"x"})
    with pytest.raises(ReplyError):
        await mirror(server, down(here, "missing", delete=True))
    with pytest.raises(ReplyError):
        await mirror(server, down(here, "file"))
    with pytest.raises(FileError):
        await mirror(server, up(here / "file"))
    assert contents(here) == {"file": b"x"}


async def test_one_file_that_cannot_be_read(server: Server, places: tuple[Path, Path]) -> None:
    root, here = places
    fill(root, {"bad": b"x", "good": b"g"})
    fill(here, {"bad/in/the/way": b"w", "old": b"o"})
    _summary, seen = await mirror(server, down(here))
    assert seen.failures == [("fetch", "bad")]
    assert (here / "good").read_bytes() == b"g"


async def test_many_files_in_one_directory(tmp_path: Path) -> None:
    """The listing and the plan; a disk would take longer to make the files than all the rest."""
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        for number in range(10_000):
            (Path(folder) / f"{number}").touch()
        async with running_server(Path(folder)) as server:
            summary, seen = await mirror(server, down(tmp_path, dry_run=True))
    assert summary.moved == len(seen.actions) == 10_000


async def test_a_deep_tree_is_listed_level_by_level(
    server: Server, places: tuple[Path, Path]
) -> None:
    """Directories of one level in one flight; only one that is long has a data connection."""
    root, here = places
    for number in range(30):
        fill(root, {f"d{number}/e/f/x": b"x"})
    fill(root / "d7", {f"{number:0100}": b"" for number in range(250)})
    said: list[str] = []
    summary, _ = await mirror(server, down(here, dry_run=True), most=1, trace=said.append)
    assert summary.moved == 30 + 250
    assert said.count("> MLSD d7") == 1
    assert len([line for line in said if line.startswith("> MLSD")]) == 2
    asked = [line for line in said if line.startswith("> SITE MLSD")]
    assert len(asked) == len(set(asked)) == 90
    first = said.index("> SITE MLSD d0")
    assert all(line.startswith("> SITE MLSD") for line in said[first : first + 30])


async def test_a_server_that_lists_by_data_connections_only(
    places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, here = places
    fill(root, FILES)
    monkeypatch.setattr("xftp.client.session.lists_together", lambda _: False)
    async with running_server(root) as server:
        await mirror(server, down(here))
    assert contents(here) == contents(root)


async def test_names_that_are_hard_to_send(server: Server, places: tuple[Path, Path]) -> None:
    """What a server cannot tell in a line is not seen; everything else comes as it is."""
    root, here = places
    hard = ["  two spaces ", "tab\t", "-rf", "~", "*", "a;type=a", '"quoted"', "back\\slash", "%41"]
    hard += ["\udce9t\udce9", "e\u0301", "\u202eltr", "#", "size=1; x", "\x01", "x" * 200]
    fill(root / "d", {name: name.encode("utf-8", "surrogateescape") for name in hard})
    fill(root / "d", {"line\nend": b"", "carriage\rreturn": b""})
    first, seen = await mirror(server, down(here, "d"))
    assert seen.failures == []
    assert sorted(contents(here)) == sorted(hard)
    back, _ = await mirror(server, up(here, "again"))
    assert back.failed == 0
    assert contents(root / "again") == contents(here)
    assert first.moved == len(hard)


async def test_no_space_ends_it(
    server: Server, places: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first file that finds the disk full is told of, and no other is tried."""
    root, here = places
    fill(root, {f"f{number}": b"x" * 1000 for number in range(40)})
    commit = PartialFile.commit
    done: list[int] = []

    def full(self: PartialFile, *arguments: Any, **options: Any) -> None:
        if len(done) >= 5:
            raise NoSpaceError("no space")
        done.append(1)
        commit(self, *arguments, **options)

    monkeypatch.setattr(PartialFile, "commit", full)
    summary, seen = await mirror(server, down(here, delete=True))
    assert len(seen.failures) == 2
    assert (summary.moved, summary.failed, summary.not_tried) == (5, 1, 35)


async def test_a_server_that_takes_one_session_only(places: tuple[Path, Path]) -> None:
    root, here = places
    fill(root, FILES)
    async with running_server(root, limits=Limits(sessions=Limit(1))) as server:
        summary, _ = await mirror(server, down(here))
    assert summary.failed == 0
    assert contents(here) == contents(root)


async def test_the_first_session_is_needed() -> None:
    async def refuse() -> Session:
        raise LoginError(530, "no")

    pool = SessionPool(refuse, 3)
    work: Work[int] = Work(pool, lambda _session, _job: asyncio.sleep(0), lambda _j, _e: None)
    work.add([1, 2])
    with pytest.raises(LoginError):
        await work.run()


class FakeSession:
    """A session that ends after so many jobs."""

    def __init__(self, lasts: int) -> None:
        self.lasts = lasts

    @property
    def is_closed(self) -> bool:
        return self.lasts <= 0

    async def wait_closed(self) -> None:
        pass


async def test_work_goes_on_in_a_new_session_when_one_ends() -> None:
    opened: list[FakeSession] = []

    async def open_one() -> Any:
        opened.append(FakeSession(2))
        return opened[-1]

    done: list[int] = []
    failed: list[int] = []

    async def do(session: Any, job: int) -> None:
        session.lasts -= 1
        if session.is_closed:
            raise ConnectError("the server is gone")
        done.append(job)

    def note(job: int, error: XftpError) -> None:
        failed.append(job)

    work: Work[int] = Work(SessionPool(open_one, 2), do, note)
    work.add(range(6))
    await work.run()
    assert sorted(done + failed) == list(range(6))
    assert not failed or len(done) >= 3
    assert len(opened) > 2
