"""Python's ftplib against xftpd."""

from __future__ import annotations

import contextlib
import ftplib
import io
import socket
import struct
import threading
from collections.abc import Iterator

import pytest

from .programs import PASSWORD, USER, Site, both_families, content

pytestmark = pytest.mark.interop

MEGABYTE = 1_000_000
LONG = 20 * MEGABYTE


@contextlib.contextmanager
def client(
    site: Site, *, user: str = "", password: str = "", encoding: str = "utf-8"
) -> Iterator[ftplib.FTP]:
    """Log in and go to the test's folder."""
    with ftplib.FTP(encoding=encoding, timeout=30) as ftp:
        ftp.connect(site.daemon.host, site.daemon.port)
        ftp.login(user, password)
        ftp.cwd(site.there.name)
        yield ftp


def fetch(ftp: ftplib.FTP, name: str, rest: int | None = None) -> bytes:
    pieces: list[bytes] = []
    ftp.retrbinary(f"RETR {name}", pieces.append, rest=rest)
    return b"".join(pieces)


def store(
    ftp: ftplib.FTP, name: str, data: bytes, rest: int | None = None, verb: str = "STOR"
) -> None:
    ftp.storbinary(f"{verb} {name}", io.BytesIO(data), rest=rest)


def cut(data_connection: socket.socket) -> None:
    """End a connection as one that breaks: by a reset."""
    data_connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    data_connection.close()


# -- there and back ------------------------------------------------------------------------------


@both_families
@pytest.mark.parametrize("passive", [True, False], ids=["passive", "active"])
def test_there_and_back(site: Site, passive: bool) -> None:
    data = content(3 * MEGABYTE + 17)

    with client(site) as ftp:
        ftp.set_pasv(passive)
        store(ftp, "a", data)
        assert fetch(ftp, "a") == data

    assert (site.there / "a").read_bytes() == data
    verbs = {
        (True, False): "PASV",
        (True, True): "EPSV",
        (False, False): "PORT",
        (False, True): "EPRT",
    }
    assert site.commands().count(verbs[passive, site.is_ipv6]) == 2


@pytest.mark.parametrize("size", [0, 1, 8191, 8192, 8193])
def test_odd_sizes(site: Site, size: int) -> None:
    data = content(size)

    with client(site) as ftp:
        store(ftp, "a", data)
        assert fetch(ftp, "a") == data
        ftp.voidcmd("TYPE I")
        assert ftp.size("a") == size

    assert (site.there / "a").read_bytes() == data


def test_user_with_password(site: Site) -> None:
    data = site.give("a", 1000)

    with client(site, user=USER, password=PASSWORD) as ftp:
        assert fetch(ftp, "a") == data
    with pytest.raises(ftplib.error_perm, match="530"), client(site, user=USER, password="no"):
        pass


def test_two_sessions_at_once(site: Site) -> None:
    ours, theirs = content(MEGABYTE, 1), content(MEGABYTE, 2)

    with client(site) as first, client(site) as second:
        first.voidcmd("TYPE I")
        second.voidcmd("TYPE I")
        with first.transfercmd("STOR a") as one, second.transfercmd("STOR b") as other:
            for at in range(0, MEGABYTE, 100_000):
                one.sendall(ours[at : at + 100_000])
                other.sendall(theirs[at : at + 100_000])
        first.voidresp()
        second.voidresp()

    assert (site.there / "a").read_bytes() == ours
    assert (site.there / "b").read_bytes() == theirs


# -- text ----------------------------------------------------------------------------------------


def test_text_down(site: Site) -> None:
    (site.there / "a.txt").write_bytes(b"one\ntwo\r\n\nthree")
    raw: list[bytes] = []
    lines: list[str] = []

    with client(site) as ftp:
        ftp.retrlines("RETR a.txt", lines.append)
        ftp.voidcmd("TYPE A")
        with ftp.transfercmd("RETR a.txt") as data:
            while piece := data.recv(4096):
                raw.append(piece)
        ftp.voidresp()

    assert lines == ["one", "two", "", "three"]
    assert b"".join(raw) == b"one\r\ntwo\r\n\r\nthree"


def test_text_up(site: Site) -> None:
    with client(site) as ftp:
        ftp.storlines("STOR a.txt", io.BytesIO(b"one\ntwo\r\n\nthree"))

    assert (site.there / "a.txt").read_bytes() == b"one\ntwo\n\nthree\n"


def test_long_text_with_line_ends_on_every_border(site: Site) -> None:
    text = b"".join(b"x" * (number % 97) + b"\n" for number in range(30_000))

    with client(site) as ftp:
        ftp.storlines("STOR a.txt", io.BytesIO(text))
        lines: list[str] = []
        ftp.retrlines("RETR a.txt", lines.append)

    assert (site.there / "a.txt").read_bytes() == text
    assert "\n".join([*lines, ""]).encode() == text


# -- listings ------------------------------------------------------------------------------------


def test_listings(site: Site) -> None:
    site.give("some name.bin", 1234)
    (site.there / "folder").mkdir()
    lines: list[str] = []

    with client(site) as ftp:
        ftp.dir(lines.append)
        assert ftp.nlst() == ["folder", "some name.bin"]
        assert ftp.nlst("*.bin") == ["some name.bin"]
        facts = dict(ftp.mlsd(facts=["type", "size"]))
        assert ftp.nlst("folder") == []

    assert [line[0] for line in lines] == ["d", "-"]
    assert facts["folder"] == {"type": "dir"}
    assert facts["some name.bin"] == {"type": "file", "size": "1234"}


def test_long_listing(site: Site) -> None:
    names = [f"{number:05}" for number in range(2000)]
    for name in names:
        (site.there / name).touch()

    with client(site) as ftp:
        assert ftp.nlst() == names
        assert [name for name, _ in ftp.mlsd()] == names


# -- parts of files ------------------------------------------------------------------------------


def test_restart_of_a_download(site: Site) -> None:
    data = site.give("a", 100_000)

    with client(site) as ftp:
        assert fetch(ftp, "a", rest=60_000) == data[60_000:]
        assert fetch(ftp, "a", rest=100_000) == b""
        assert fetch(ftp, "a") == data
        with pytest.raises(ftplib.error_perm, match="554"):
            fetch(ftp, "a", rest=100_001)


@pytest.mark.parametrize("verb", ["REST", "APPE"])
def test_resume_of_a_cut_upload(site: Site, verb: str) -> None:
    data = content(LONG)

    with client(site) as ftp:
        ftp.voidcmd("TYPE I")
        connection = ftp.transfercmd("STOR a")
        connection.sendall(data[: LONG // 2])
        cut(connection)
        with pytest.raises(ftplib.error_temp, match="426"):
            ftp.voidresp()
        kept = ftp.size("a") or 0
        assert 0 < kept <= LONG // 2
        assert not (site.there / "a").exists()
        if verb == "REST":
            store(ftp, "a", data[kept:], rest=kept)
        else:
            store(ftp, "a", data[kept:], verb="APPE")
        assert ftp.size("a") == LONG

    assert (site.there / "a").read_bytes() == data
    assert site.part_size("a") == 0


def test_cut_append_leaves_the_old_length(site: Site) -> None:
    old = site.give("a", 1000)

    with client(site) as ftp:
        ftp.voidcmd("TYPE I")
        connection = ftp.transfercmd("APPE a")
        connection.sendall(content(MEGABYTE))
        cut(connection)
        with pytest.raises(ftplib.error_temp, match="426"):
            ftp.voidresp()
        assert ftp.size("a") == 1000

    assert (site.there / "a").read_bytes() == old


def test_cut_upload_leaves_the_old_file(site: Site) -> None:
    old = site.give("a", 1000)

    with client(site) as ftp:
        ftp.voidcmd("TYPE I")
        connection = ftp.transfercmd("STOR a")
        connection.sendall(content(MEGABYTE))
        cut(connection)
        with pytest.raises(ftplib.error_temp, match="426"):
            ftp.voidresp()

    assert (site.there / "a").read_bytes() == old


def test_append(site: Site) -> None:
    with client(site) as ftp:
        store(ftp, "a", b"one ", verb="APPE")
        store(ftp, "a", b"two", verb="APPE")

    assert (site.there / "a").read_bytes() == b"one two"


def test_unique_name(site: Site) -> None:
    site.give("a", 10)

    with client(site) as ftp:
        store(ftp, "a", b"new", verb="STOU")

    assert sorted(path.read_bytes() for path in site.there.iterdir() if path.name != "a") == [
        b"new"
    ]


# -- interruptions -------------------------------------------------------------------------------


def test_abort_of_a_download(site: Site) -> None:
    """ftplib sends ABOR as urgent data."""
    data = site.give("a", LONG)

    with client(site) as ftp:
        ftp.voidcmd("TYPE I")
        with ftp.transfercmd("RETR a") as connection:
            connection.recv(1000)
            assert ftp.abort().startswith("426")
        assert ftp.voidresp().startswith("226")
        assert fetch(ftp, "a") == data


def test_abort_of_nothing(site: Site) -> None:
    with client(site) as ftp:
        assert ftp.abort().startswith(("225", "226"))
        assert ftp.pwd() == f"/{site.there.name}"


def test_download_that_the_client_breaks_off(site: Site) -> None:
    data = site.give("a", LONG)

    with client(site) as ftp:
        ftp.voidcmd("TYPE I")
        with ftp.transfercmd("RETR a") as connection:
            connection.recv(1000)
        with pytest.raises(ftplib.error_temp, match="426"):
            ftp.voidresp()
        assert fetch(ftp, "a") == data


def test_slow_reader_does_not_hold_up_others(site: Site) -> None:
    data = site.give("a", LONG)

    with client(site) as slow, client(site) as fast:
        slow.voidcmd("TYPE I")
        with slow.transfercmd("RETR a") as connection:
            assert fetch(fast, "a") == data
            received = len(connection.recv(1))
            while piece := connection.recv(1 << 20):
                received += len(piece)
        slow.voidresp()

    assert received == len(data)


def test_many_clients(site: Site) -> None:
    data = site.give("a", MEGABYTE)
    results: list[bool] = []

    def work() -> None:
        with client(site) as ftp:
            results.append(fetch(ftp, "a") == data)

    threads = [threading.Thread(target=work) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert results == [True] * 20


# -- names, files and their properties -----------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
@pytest.mark.parametrize("name", ["two words", "größe.bin", 'a "quoted" name', "  x  ", "[a]*?"])
def test_names(site: Site, name: str, encoding: str) -> None:
    data = content(1000)

    with client(site, encoding=encoding) as ftp:
        store(ftp, name, data)
        assert ftp.nlst() == [name]
        assert [entry for entry, _ in ftp.mlsd()] == [name]
        assert fetch(ftp, name) == data
        ftp.rename(name, "other")
        ftp.rename("other", name)
        ftp.delete(name)
        assert ftp.mkd(name) == f"/{site.there.name}/{name}"
        ftp.cwd(name)
        assert ftp.pwd() == f"/{site.there.name}/{name}"
        ftp.cwd("..")
        ftp.rmd(name)

    assert list(site.there.iterdir()) == []


def test_directories(site: Site) -> None:
    with client(site) as ftp:
        ftp.mkd("one")
        ftp.mkd("one/two")
        with pytest.raises(ftplib.error_perm, match="550"):
            ftp.rmd("one")
        with pytest.raises(ftplib.error_perm, match="550"):
            ftp.mkd("one")
        ftp.rmd("one/two")
        ftp.rmd("one")

    assert list(site.there.iterdir()) == []


def test_errors_leave_the_session_alive(site: Site) -> None:
    data = site.give("a", 1000)

    with client(site) as ftp:
        for command in ("RETR missing", "STOR missing/a", "STOR .", "NLST missing"):
            with pytest.raises(ftplib.error_perm, match="550"):
                ftp.transfercmd(command)
        with pytest.raises(ftplib.error_perm, match="550"):
            ftp.delete("missing")
        with pytest.raises(ftplib.error_perm, match="501"):
            list(ftp.mlsd("a"))
        with pytest.raises(ftplib.error_perm, match="500"):
            ftp.voidcmd("NONSENSE")
        assert fetch(ftp, "a") == data
