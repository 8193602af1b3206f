"""xftp, the command, against servers that know nothing of MULT: vsftpd, pyftpdlib, aioftp."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

import pytest

from .programs import IPV4, IPV6, XFTP, Ended, Site
from .servers import Server, aioftp, pyftpdlib, vsftpd

pytestmark = pytest.mark.interop

MEGABYTE = 1_000_000
SERVERS = {
    "vsftpd-ipv4": (vsftpd, IPV4),
    "vsftpd-ipv6": (vsftpd, IPV6),
    "pyftpdlib-ipv4": (pyftpdlib, IPV4),
    "pyftpdlib-ipv6": (pyftpdlib, IPV6),
    "aioftp-ipv4": (aioftp, IPV4),
    "aioftp-ipv6": (aioftp, IPV6),
}
OVER_IPV4 = {name: server for name, server in SERVERS.items() if server[1] == IPV4}
# aioftp knows no PORT, EPRT, MDTM and SIZE.
ACTIVE = {name: server for name, server in SERVERS.items() if server[0] is not aioftp}
COMPLETE = {name: server for name, server in ACTIVE.items() if server[1] == IPV4}


def on(servers: Mapping[str, tuple[Server, str]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "foreign_site", servers.values(), indirect=True, ids=list(servers)
    )


def xftp(site: Site, *arguments: str, stdin: bytes = b"", check: bool = True) -> Ended:
    return site.run(*XFTP, *arguments, stdin=stdin, check=check)


def readable(site: Site, name: str) -> None:
    """Let the user that vsftpd runs as change a file."""
    (site.there / name).chmod(0o666)


@on(SERVERS)
def test_get(foreign_site: Site) -> None:
    """Falls back to one connection, and says nothing."""
    data = foreign_site.give("a", 3 * MEGABYTE + 17)

    ended = xftp(foreign_site, "get", "-n", "8", f"{foreign_site.url}/a")

    assert (foreign_site.here / "a").read_bytes() == data
    assert ended.output == b""
    assert not ended.errors, "nothing is said of the connections that it did without"


@on(COMPLETE)
def test_time_of_a_download(foreign_site: Site) -> None:
    foreign_site.give("a", 1000)
    os.utime(foreign_site.there / "a", (1_000_000_000, 1_000_000_000))

    xftp(foreign_site, "get", f"{foreign_site.url}/a")

    assert (foreign_site.here / "a").stat().st_mtime == 1_000_000_000


@on(SERVERS)
def test_put(foreign_site: Site) -> None:
    data = foreign_site.make("a", 3 * MEGABYTE + 17)

    ended = xftp(foreign_site, "put", "-n", "8", "a", f"{foreign_site.url}/")

    assert (foreign_site.there / "a").read_bytes() == data
    assert ended.output == b""
    assert not ended.errors, "nothing is said of the connections that it did without"


@on(OVER_IPV4)
def test_report(foreign_site: Site) -> None:
    foreign_site.give("a", 100_000)

    ended = xftp(foreign_site, "get", "--json", "-v", f"{foreign_site.url}/a")

    report = json.loads(ended.text)
    assert report["bytes"] == 100_000
    assert len(report["connections"]) == 1
    assert "> MULT" in ended.errors


@on(SERVERS)
def test_list(foreign_site: Site) -> None:
    foreign_site.give("two words.bin", 1234)
    (foreign_site.there / "folder").mkdir()

    names = xftp(foreign_site, "ls", f"{foreign_site.url}/").lines
    details = xftp(foreign_site, "ls", "-l", f"{foreign_site.url}/").text

    assert sorted(name.rstrip("/") for name in names) == ["folder", "two words.bin"]
    assert "1234" in details


@on(OVER_IPV4)
@pytest.mark.parametrize("size", [0, 8192])
def test_odd_sizes(foreign_site: Site, size: int) -> None:
    data = foreign_site.make("a", size)

    xftp(foreign_site, "put", "a", f"{foreign_site.url}/b")
    xftp(foreign_site, "get", "-o", "c", f"{foreign_site.url}/b")

    assert (foreign_site.there / "b").read_bytes() == data
    assert (foreign_site.here / "c").read_bytes() == data


@on(ACTIVE)
def test_active(foreign_site: Site) -> None:
    data = foreign_site.make("a", MEGABYTE)

    xftp(foreign_site, "put", "--active", "-n", "4", "a", f"{foreign_site.url}/")
    xftp(foreign_site, "get", "--active", "-n", "4", "-o", "b", f"{foreign_site.url}/a")

    assert (foreign_site.there / "a").read_bytes() == data
    assert (foreign_site.here / "b").read_bytes() == data


@on(OVER_IPV4)
def test_resume_of_a_cut_download(foreign_site: Site) -> None:
    site = foreign_site
    data = site.give("a", 40 * MEGABYTE)
    slowly = ("get", "--limit-rate", "4M", f"{site.url}/a")

    def has_begun() -> bool:
        return any(path.stat().st_size > 200_000 for path in site.here.glob("a*"))

    site.kill_when(has_begun, "xftp has a part of the file", *XFTP, *slowly, is_ours=False)
    assert not (site.here / "a").exists()

    report = json.loads(xftp(site, "get", "--resume", "--json", f"{site.url}/a").text)

    assert (site.here / "a").read_bytes() == data
    assert 0 < report["offset"] < len(data)


@on(COMPLETE)
def test_resume_of_a_cut_upload(foreign_site: Site) -> None:
    data = foreign_site.make("a", MEGABYTE)
    (foreign_site.there / "a").write_bytes(data[:400_000])
    readable(foreign_site, "a")

    ended = xftp(foreign_site, "put", "--resume", "--json", "a", f"{foreign_site.url}/")

    assert (foreign_site.there / "a").read_bytes() == data
    assert json.loads(ended.text)["offset"] == 400_000


@pytest.mark.parametrize("foreign_site", [(aioftp, IPV4)], indirect=True, ids=["aioftp"])
def test_resume_where_the_server_tells_no_size(foreign_site: Site) -> None:
    data = foreign_site.make("a", MEGABYTE)
    (foreign_site.there / "a").write_bytes(data[:400_000])

    xftp(foreign_site, "put", "--resume", "a", f"{foreign_site.url}/")

    assert (foreign_site.there / "a").read_bytes() == data


@on(OVER_IPV4)
def test_target_that_exists(foreign_site: Site) -> None:
    old = foreign_site.give("a", 1000, seed=1)
    new = foreign_site.make("a", 1000, seed=2)
    readable(foreign_site, "a")
    url = f"{foreign_site.url}/a"

    assert xftp(foreign_site, "put", "a", url, check=False).code == 4
    assert (foreign_site.there / "a").read_bytes() == old
    xftp(foreign_site, "put", "--skip", "a", url)
    assert (foreign_site.there / "a").read_bytes() == old
    xftp(foreign_site, "put", "--overwrite", "a", url)
    assert (foreign_site.there / "a").read_bytes() == new


@on(OVER_IPV4)
def test_streams(foreign_site: Site) -> None:
    url = f"{foreign_site.url}/a"

    xftp(foreign_site, "put", "-", url, stdin=b"from a pipe")

    assert (foreign_site.there / "a").read_bytes() == b"from a pipe"
    assert xftp(foreign_site, "get", "-o", "-", url).output == b"from a pipe"


@on(OVER_IPV4)
def test_files_and_directories(foreign_site: Site) -> None:
    data = foreign_site.make("größe", 1000)
    folder = f"{foreign_site.url}/two%20words"

    xftp(foreign_site, "mkdir", folder)
    xftp(foreign_site, "put", "größe", f"{folder}/")
    assert (foreign_site.there / "two words" / "größe").read_bytes() == data
    new = f"{foreign_site.there.name}/two words/new"
    xftp(foreign_site, "mv", f"{folder}/gr%C3%B6%C3%9Fe", new)
    assert (foreign_site.there / "two words" / "new").read_bytes() == data
    xftp(foreign_site, "rm", f"{folder}/new")
    assert list((foreign_site.there / "two words").iterdir()) == []


@on(OVER_IPV4)
def test_missing_file(foreign_site: Site) -> None:
    ended = xftp(foreign_site, "get", f"{foreign_site.url}/missing", check=False)

    assert ended.code == 1
    assert "550" in ended.errors
    assert list(foreign_site.here.iterdir()) == []
