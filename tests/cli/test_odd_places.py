"""Places here where a file cannot be, or may not be looked at: a sentence, and no traceback."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from .conftest import Client, Place

LONG = "x" * 300
ORDINARY = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search,-fowner"]
"""Makes root see permissions as anybody else does."""


@pytest.fixture
def shut(xftp: Client, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give a directory with a file and a directory in it, which the client may not enter."""
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("root may enter anything: needs setpriv (util-linux)")
        command = Client.command
        monkeypatch.setattr(
            Client, "command", staticmethod(lambda arguments: [*ORDINARY, *command(arguments)])
        )
    path = xftp.here / "shut"
    (path / "sub").mkdir(parents=True)
    (path / "file").write_bytes(b"file")
    path.chmod(0)
    yield path
    path.chmod(0o700)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["get", "-o", "shut/x", "{url}there"], "shut/x: Permission denied"),
        (["get", "-o", "shut", "{url}there"], "shut/there: Permission denied"),
        (["get", "-o", "shut/", "{url}there", "{url}here"], "shut/here: Permission denied"),
        (["put", "shut/file", "{url}"], "shut/file: Permission denied"),
        (["put", "shut/file", "own", "{url}"], "shut/file: Permission denied"),
        (["mirror", "shut/sub", "{url}"], "shut/sub: Permission denied"),
        (["mirror", "{url}", "shut/sub"], "shut/sub: Permission denied"),
        (["get", "-o", LONG, "{url}there"], "File name too long"),
        (["get", f"{{url}}{LONG}"], "File name too long"),
        (["put", LONG, "{url}"], "File name too long"),
        (["mirror", "{url}", LONG], "File name too long"),
        (["put", "", "{url}"], "the name of a file is missing"),
    ],
)
def test_a_place_that_is_none(
    xftp: Client, place: Place, shut: Path, arguments: list[str], said: str
) -> None:
    for name in ("there", "here"):
        (place.path / name).write_bytes(b"there")
    (xftp.here / "own").write_bytes(b"own")
    done = xftp(*(each.format(url=place.url) for each in arguments), expect=None)
    assert done.returncode in (1, 2, 4)
    assert said in done.stderr.decode()
    if "own" in arguments:
        assert (place.path / "own").read_bytes() == b"own"


def test_in_json_too(xftp: Client, place: Place, shut: Path) -> None:
    (xftp.here / "own").write_bytes(b"own")
    done = xftp("put", "--json", "shut/file", "own", place.url, expect=4)
    assert [json.loads(line)["status"] for line in done.stdout.splitlines()] == ["failed", "done"]


def test_the_shell_goes_on(xftp: Client, place: Place, shut: Path) -> None:
    (place.path / "there").write_bytes(b"there")
    words = f"get there shut/x\nget there {LONG}\nget there\n"
    done = xftp("shell", place.url, stdin=words.encode(), expect=None)
    assert "shut/x: Permission denied" in done.stderr.decode()
    assert (xftp.here / "there").read_bytes() == b"there"


@pytest.mark.parametrize("kind", ["directory", "link", "pipe"])
def test_what_is_in_the_way_of_the_partial_file_is_named(
    xftp: Client, place: Place, kind: str
) -> None:
    (place.path / "there").write_bytes(b"there")
    part = xftp.here / "there.xftp.part"
    if kind == "directory":
        part.mkdir()
    elif kind == "link":
        part.symlink_to("elsewhere")
    else:
        os.mkfifo(part)
    done = xftp("get", place.url_of("there"), expect=4)
    assert done.stderr == b"xftp: there.xftp.part is in the way: it is no plain file\n"
    assert sorted(each.name for each in xftp.here.iterdir()) == ["there.xftp.part"]


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1"])
def test_standard_output_by_its_name(xftp: Client, place: Place, name: str) -> None:
    (place.path / "there").write_bytes(b"there")
    assert xftp("get", "-o", name, place.url_of("there")).stdout == b"there"
    with (xftp.here / "log").open("wb") as log:
        log.write(b"before ")
        log.flush()
        command = xftp.start("get", "-o", name, place.url_of("there"), stdout=log.fileno())
        assert command.communicate() == (None, b"")
        log.seek(0, os.SEEK_END)
        log.write(b" after")
    assert (xftp.here / "log").read_bytes() == b"before there after"
