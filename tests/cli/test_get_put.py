"""`xftp` and `xftpd` as two processes: files there and back, and what is said about them."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from xftp.transport.partial import PartialFile

from .conftest import Client, Place

SOME_BYTES = os.urandom(300_000)
SLOW_ENOUGH = ("--limit-rate", "2M")
"""Else a short file may be there before every connection is."""


@contextlib.contextmanager
def open_directory(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def test_get(xftp: Client, place: Place) -> None:
    (place.path / "file").write_bytes(SOME_BYTES)
    os.utime(place.path / "file", (1e9, 1e9))
    done = xftp("get", "-n", "8", *SLOW_ENOUGH, place.url_of("file"))
    assert (xftp.here / "file").read_bytes() == SOME_BYTES
    assert (xftp.here / "file").stat().st_mtime == 1e9
    assert (done.stdout, done.stderr) == (b"", b""), "quiet in a pipe"


def test_summary_of_every_connection(xftp: Client, place: Place) -> None:
    (place.path / "file").write_bytes(SOME_BYTES)
    done = xftp("get", "-v", "-n", "8", *SLOW_ENOUGH, place.url_of("file"))
    assert b"\nfile: 300 kB in " in done.stderr
    assert b" over 8 connections\n" in done.stderr
    assert b"\n  connection 7: " in done.stderr


def test_get_without_times(xftp: Client, place: Place) -> None:
    (place.path / "file").write_bytes(b"x")
    os.utime(place.path / "file", (1e9, 1e9))
    xftp("get", "--no-preserve-times", place.url_of("file"))
    assert (xftp.here / "file").stat().st_mtime > 1e9


@pytest.mark.parametrize("count", ["9", "1000", "99999999999999999999"])
def test_more_connections_than_allowed_are_cut_and_said_so(
    xftp: Client, place: Place, count: str
) -> None:
    (place.path / "file").write_bytes(SOME_BYTES)
    done = xftp("get", "--json", "-n", count, *SLOW_ENOUGH, place.url_of("file"))
    (said,) = done.stderr.splitlines()
    assert b" 8 " in said
    assert len(json.loads(done.stdout)["connections"]) == 8


def test_get_quietly(xftp: Client, place: Place) -> None:
    (place.path / "file").write_bytes(SOME_BYTES)
    done = xftp("get", "-q", place.url_of("file"))
    assert (done.stdout, done.stderr) == (b"", b"")


def test_get_verbosely(xftp: Client, place: Place) -> None:
    (place.path / "file").write_bytes(SOME_BYTES)
    url = place.url_of("file", "joe:open%20sesame@")
    said = xftp("get", "-v", "-n", "2", *SLOW_ENOUGH, url).stderr.decode()
    assert "> RETR " in said
    assert "connection 1: " in said
    assert "open sesame" not in said
    assert "open%20sesame" not in said


def test_get_into_a_directory_and_under_another_name(xftp: Client, place: Place) -> None:
    (place.path / "a").write_bytes(b"a")
    (place.path / "b").write_bytes(b"")
    (xftp.here / "down").mkdir()
    xftp("get", "-o", "down", place.url_of("a"), place.url_of("b"))
    assert (xftp.here / "down/a").read_bytes() == b"a"
    assert (xftp.here / "down/b").read_bytes() == b""
    xftp("get", "-o", "new name", place.url_of("a"))
    assert (xftp.here / "new name").read_bytes() == b"a"


def test_get_to_standard_output(xftp: Client, place: Place) -> None:
    (place.path / "file").write_bytes(SOME_BYTES)
    assert xftp("get", "-o", "-", place.url_of("file")).stdout == SOME_BYTES


def test_get_to_a_device(xftp: Client, place: Place) -> None:
    (place.path / "file").write_bytes(SOME_BYTES)
    xftp("get", "-o", "/dev/null", place.url_of("file"))
    assert Path("/dev/null").is_char_device()


def test_a_reader_that_leaves_is_no_drama(xftp: Client, place: Place) -> None:
    (place.path / "file").write_bytes(bytes(20_000_000))
    process = xftp.start("get", "-o", "-", place.url_of("file"))
    with process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(10)
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


def test_the_others_are_fetched_after_a_failure(xftp: Client, place: Place) -> None:
    (place.path / "file").write_bytes(b"x")
    done = xftp("get", place.url_of("missing"), place.url_of("file"), expect=1)
    assert (xftp.here / "file").exists()
    assert b"xftp: " in done.stderr
    assert b"550" in done.stderr


def test_an_existing_file_is_refused_without_a_terminal(xftp: Client, place: Place) -> None:
    (place.path / "file").write_bytes(b"new")
    (xftp.here / "file").write_bytes(b"old")
    done = xftp("get", place.url_of("file"), expect=4)
    assert done.stderr == b"xftp: file: already there; choose --overwrite, --resume or --skip\n"
    assert (xftp.here / "file").read_bytes() == b"old"


@pytest.mark.parametrize(
    ("choice", "content"),
    [
        ("--overwrite", b"abcdef"),
        ("--skip", b"xyz"),
        ("--resume --no-verify", b"xyzdef"),
        ("--resume", b"abcdef"),  # what was there is compared too, and mended
    ],
)
def test_choices_for_an_existing_file(
    xftp: Client, place: Place, choice: str, content: bytes
) -> None:
    (place.path / "file").write_bytes(b"abcdef")
    (xftp.here / "file").write_bytes(b"xyz")
    xftp("get", *choice.split(), place.url_of("file"))
    assert (xftp.here / "file").read_bytes() == content


def test_put(xftp: Client, place: Place) -> None:
    (xftp.here / "file").write_bytes(SOME_BYTES)
    os.utime(xftp.here / "file", (1e9, 1e9))
    done = xftp("put", "-v", "-n", "8", *SLOW_ENOUGH, "file", place.url_of("there"))
    assert (place.path / "there").read_bytes() == SOME_BYTES
    assert (place.path / "there").stat().st_mtime == 1e9
    assert b" over 8 connections\n" in done.stderr


def test_put_keeps_the_name_in_a_directory(xftp: Client, place: Place) -> None:
    (place.path / "sub").mkdir()
    (xftp.here / "one").write_bytes(b"1")
    (xftp.here / "two").write_bytes(b"2")
    xftp("put", "one", "two", place.url)
    xftp("put", "one", "two", place.url_of("sub"))
    xftp("put", "--overwrite", "one", place.url_of("sub"))
    for directory in (place.path, place.path / "sub"):
        assert (directory / "one").read_bytes() == b"1"
        assert (directory / "two").read_bytes() == b"2"


def test_put_one_file_to_a_directory_without_slash(xftp: Client, place: Place) -> None:
    (place.path / "sub").mkdir()
    (xftp.here / "one").write_bytes(b"1")
    xftp("put", "one", place.url_of("sub"))
    assert (place.path / "sub/one").read_bytes() == b"1"


def test_put_several_files_to_one_name_fails(xftp: Client, place: Place) -> None:
    (xftp.here / "one").write_bytes(b"1")
    (xftp.here / "two").write_bytes(b"2")
    done = xftp("put", "one", "two", place.url_of("name"), expect=2)
    assert done.stderr.count(b"several files need a directory") == 1
    assert list(place.path.iterdir()) == []


def test_put_standard_input(xftp: Client, place: Place) -> None:
    xftp("put", "-", place.url_of("stream"), stdin=SOME_BYTES)
    assert (place.path / "stream").read_bytes() == SOME_BYTES
    done = xftp("put", "-", place.url_of("stream"), stdin=b"other", expect=4)
    assert b"already there" in done.stderr
    xftp("put", "--overwrite", "-", place.url_of("stream"), stdin=b"other")
    assert (place.path / "stream").read_bytes() == b"other"


@pytest.mark.parametrize(
    ("choice", "content", "status"),
    [
        ("--overwrite", b"abcdef", 0),
        ("--skip", b"abc", 0),
        ("--resume", b"abc", 4),
        ("--no-preserve-times", b"abc", 4),
    ],
)
def test_choices_for_an_existing_remote_file(
    xftp: Client, place: Place, choice: str, content: bytes, status: int
) -> None:
    (xftp.here / "file").write_bytes(b"abcdef")
    (place.path / "file").write_bytes(b"abc")
    xftp("put", choice, "file", place.url, expect=status)
    assert (place.path / "file").read_bytes() == content


def test_what_was_kept_of_another_version_is_not_mixed_in(xftp: Client, place: Place) -> None:
    """A file that changed on the server since its download was cut is fetched anew."""
    (place.path / "file").write_bytes(b"new content")
    with open_directory(xftp.here) as directory:
        part = PartialFile.open(directory, "file")
        part.note_source("11 bytes of 1000000000.0")
        part.write([memoryview(b"old")], 0)
        part.keep([(0, 3)], 11)
    done = xftp("get", "--resume", place.url_of("file"))
    assert b"another version, starting over" in done.stderr
    assert (xftp.here / "file").read_bytes() == b"new content"


def test_what_a_cut_download_left_is_gone_on_with_unasked(xftp: Client, place: Place) -> None:
    (place.path / "file").write_bytes(b"content")
    os.utime(place.path / "file", (1e9, 1e9))
    with open_directory(xftp.here) as directory:
        part = PartialFile.open(directory, "file")
        part.note_source("7 bytes of 1000000000.0")
        part.write([memoryview(b"con")], 0)
        part.keep([(0, 3)], 7)
    done = xftp("get", "--json", place.url_of("file"))
    assert json.loads(done.stdout)["offset"] == 3
    assert done.stderr.decode().splitlines() == [
        "xftp: file: going on with the 3 bytes that an earlier transfer left; "
        "--overwrite begins anew"
    ]
    assert (xftp.here / "file").read_bytes() == b"content"
    assert os.listdir(xftp.here) == ["file"]


def test_upload_that_is_complete_is_left_and_another_version_refused(
    xftp: Client, place: Place
) -> None:
    (xftp.here / "file").write_bytes(b"abcdef")
    os.utime(xftp.here / "file", (1_000_000_000, 1_000_000_000))
    xftp("put", "file", place.url)
    xftp("put", "--resume", "file", place.url)
    os.utime(place.path / "file")  # who was cut at the last moment had not given it its time yet
    xftp("put", "--resume", "--no-verify", "file", place.url)
    assert (place.path / "file").stat().st_mtime == 1_000_000_000
    (place.path / "file").write_bytes(b"ABCDEF")
    done = xftp("put", "--resume", "file", place.url, expect=4)
    assert b"another version" in done.stderr
    assert (place.path / "file").read_bytes() == b"ABCDEF"


def test_local_problems_end_with_4(xftp: Client, place: Place) -> None:
    (place.path / "file").write_bytes(b"x")
    (xftp.here / "directory").mkdir()
    for arguments in (
        ("put", "missing", place.url),
        ("put", "directory", place.url),
        ("get", "-o", "no/such/place", place.url_of("file")),
    ):
        done = xftp(*arguments, expect=4)
        assert done.stderr.startswith(b"xftp: ")
        assert done.stderr.count(b"\n") == 1


def test_connection_and_login_problems_end_with_3(xftp: Client, place: Place) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # not listening: refused
        done = xftp("get", f"ftp://127.0.0.1:{unused.getsockname()[1]}/x", expect=3)
    assert done.stderr.startswith(b"xftp: ")
    done = xftp("get", place.url_of("x", "joe:wrong@"), place.url_of("y", "joe:wrong@"), expect=3)
    assert b"wrong" not in done.stderr
    assert b"530" in done.stderr


def test_a_password_is_never_printed_but_used(xftp: Client, place: Place) -> None:
    (place.path / "file").write_bytes(b"x")
    port = place.address.rpartition(":")[2]
    assert port
    netrc = xftp.here.parent / "home" / ".netrc"
    netrc.write_text('machine 127.0.0.1 login joe password "open sesame"\n')
    netrc.chmod(0o600)
    said = xftp("get", "-v", place.url_of("file")).stderr
    assert b"> USER joe" in said
    assert b"sesame" not in said
    netrc.unlink()
    said = xftp(
        "get", "-v", "--overwrite", "--user", "joe", place.url_of("file"),
        XFTP_PASSWORD="open sesame",
    ).stderr  # fmt: skip
    assert b"> USER joe" in said
    assert b"sesame" not in said
    done = xftp("get", "--user", "joe", place.url_of("file"), expect=3)
    assert b"no password for joe" in done.stderr


def test_json(xftp: Client, place: Place) -> None:
    (place.path / "file").write_bytes(SOME_BYTES)
    urls = (place.url_of("file"), place.url_of("no"))
    done = xftp("get", "--json", "-n", "2", *SLOW_ENOUGH, *urls, expect=1)
    good, bad = (json.loads(line) for line in done.stdout.splitlines())
    assert good["status"] == "done"
    assert good["bytes"] == len(SOME_BYTES)
    assert len(good["connections"]) == 2
    assert good["framed"] is True
    assert good["version"] == 1
    assert bad["status"] == "failed"
    assert "550" in bad["error"]
    done = xftp("get", "--json", "--skip", place.url_of("file"))
    assert json.loads(done.stdout)["status"] == "skipped"


@pytest.mark.parametrize("direction", ["--active", "--passive"])
def test_active_and_passive(xftp: Client, place: Place, direction: str) -> None:
    (place.path / "file").write_bytes(SOME_BYTES)
    xftp("get", direction, "-4", place.url_of("file"))
    assert (xftp.here / "file").read_bytes() == SOME_BYTES


def test_ls(xftp: Client, place: Place) -> None:
    (place.path / "plain").write_bytes(b"12345")
    (place.path / "sub").mkdir()
    (place.path / "evil\x1b[31m").touch()
    assert xftp("ls", place.url).stdout == b"evil?[31m\nplain\nsub/\n"
    lines = xftp("ls", "-l", place.url).stdout.decode().splitlines()
    assert len(lines) == 3
    assert " 5 " in lines[1]
    assert lines[2].startswith("d")
    xftp("ls", place.url_of("missing"), expect=1)


def test_one_shot_commands(xftp: Client, place: Place) -> None:
    (place.path / "file").write_bytes(b"x")
    xftp("mkdir", place.url_of("sub"))
    xftp("mv", place.url_of("file"), f"{place.name}/sub/moved")
    assert (place.path / "sub/moved").exists()
    xftp("mv", place.url_of("sub/moved"), place.url_of("again"))
    xftp("rm", place.url_of("again"), place.url_of("sub/gone"), expect=1)
    assert [each.name for each in place.path.iterdir()] == ["sub"]
    xftp("rm", place.url_of("sub"), expect=1)


def test_ls_into_a_closed_pipe(xftp: Client, place: Place) -> None:
    (place.path / "file").touch()
    read_end, write_end = os.pipe()
    os.close(read_end)
    process = xftp.start("ls", place.url, stdout=write_end)
    os.close(write_end)
    _, said = process.communicate(timeout=30)
    assert said == b""
    assert process.returncode == 1


def test_standard_streams_may_be_closed(xftp: Client, place: Place) -> None:
    (place.path / "file").write_bytes(b"x")
    done = subprocess.run(
        f"{' '.join(Client.command(('get', place.url_of('file'))))} 0<&- 1>&- 2>&-",
        shell=True,
        cwd=xftp.here,
        env=xftp.environment,
        timeout=30,
    )
    assert done.returncode == 0
    assert (xftp.here / "file").read_bytes() == b"x"


def test_several_files_go_together(xftp: Client, place: Place) -> None:
    """As one transfer, by what the server says; what is there already is not touched."""
    names = [f"f{number}" for number in range(20)]
    for name in names:
        (xftp.here / name).write_bytes(name.encode() * 1000)
    done = xftp("put", "-v", *names, place.url)
    assert done.stderr.count(b"> MSTR") == 1
    assert b"> STOR" not in done.stderr
    assert {path.name: path.read_bytes() for path in place.path.iterdir()} == {
        name: name.encode() * 1000 for name in names
    }
    target = xftp.here / "back"
    target.mkdir()
    (target / "f3").write_text("mine")
    urls = [place.url_of(name) for name in (*names, "missing")]
    done = xftp("get", "-v", "--json", "-o", "back", *urls, expect=4)
    assert done.stderr.count(b"> MRTR") == 1
    told = {each["url"]: each for each in map(json.loads, done.stdout.splitlines())}
    assert len(told) == len(urls)
    states = {url.rpartition("/")[2]: each["status"] for url, each in told.items()}
    assert states == dict.fromkeys(names, "done") | {"f3": "failed", "missing": "failed"}
    assert told[place.url_of("f1")]["bytes"] == 2000
    together = [each for each in told.values() if each["status"] == "done"]
    assert [bool(each["connections"]) for each in together] == [True] + [False] * 18
    assert len({each["bytes_per_s"] for each in together}) == 1
    assert {each["files"] for each in together} == {19}
    moved = sum(each["bytes"] for each in together)
    assert {each["together_bytes"] for each in together} == {moved}
    assert b"\n19 files: " in done.stderr
    assert done.stderr.count(b"\n  connection 0: ") == 1
    assert (target / "f3").read_text() == "mine"
    assert (target / "f4").read_bytes() == (xftp.here / "f4").read_bytes()


@pytest.mark.parametrize("choice", [(), ("--skip",)])
def test_a_cut_upload_is_no_file_that_is_there(
    xftp: Client, place: Place, choice: tuple[str, ...]
) -> None:
    (xftp.here / "file").write_bytes(b"all of the content")
    (place.path / "file.xftp.part").write_bytes(b"all of")
    xftp("put", *choice, "file", place.url_of("file"))
    assert (place.path / "file").read_bytes() == b"all of the content"
