"""curl, lftp and Python's ftplib against xftpd, within TLS."""

from __future__ import annotations

import contextlib
import ftplib
import io
import re
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tls import client_context, write_authority, write_certificate

from .programs import (
    IPV4,
    PASSWORD,
    USER,
    XFTPD,
    Daemon,
    Ended,
    Site,
    content,
    environment,
    find,
    running,
    wait_for,
)

pytestmark = pytest.mark.interop

MEGABYTE = 1_000_000
VERSIONS = pytest.mark.parametrize("version", ["1.2", "1.3"])


class SecureSite(Site):
    """A folder of a daemon that requires TLS for everything."""

    @property
    def authority(self) -> Path:
        return self.daemon.root.parent / "ca.pem"

    @property
    def implicit_url(self) -> str:
        found = re.search(r"^listening on \S+:(\d+) with TLS$", self.daemon.log.read_text(), re.M)
        assert found
        return f"ftps://{IPV4}:{found[1]}/{self.there.name}"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    folder = tmp_path_factory.mktemp("tls")
    root = folder / "root"
    root.mkdir()
    chain, key = write_certificate(folder)
    write_authority(folder)
    command = [*XFTPD, "--root", str(root), "--host", IPV4, "--port", "0", "-vv", "--writable"]
    command += ["--user", f"{USER}:{PASSWORD}", "--tls-cert", str(chain), "--tls-key", str(key)]
    command += ["--implicit-tls-port", "0", "--require-tls", "data"]
    log = folder / "log"
    with running(command, cwd=folder, log=log, env=environment(folder)):
        port = wait_for(
            lambda: re.search(r":(\d+)\n(?=listening on \S+ with TLS$)", log.read_text(), re.M),
            "xftpd does not listen",
        )
        yield Daemon(IPV4, int(port[1]), root, log)


@pytest.fixture
def site(daemon: Daemon, tmp_path: Path) -> Iterator[SecureSite]:
    there, here = daemon.root / tmp_path.name, tmp_path / "here"
    there.mkdir()
    here.mkdir()
    site = SecureSite(daemon, there, here, daemon.log.stat().st_size)
    yield site
    site.wait_until_left()
    assert "Traceback" not in site.log()


# -- curl ----------------------------------------------------------------------------------------


def curl(site: SecureSite, *arguments: str, check: bool = True) -> Ended:
    command = (find("curl"), "-q", "-sS", "--cacert", str(site.authority))
    return site.run(*command, "--user", f"{USER}:{PASSWORD}", *arguments, check=check)


@VERSIONS
def test_curl_there_and_back(site: SecureSite, version: str) -> None:
    """Passive: where the server dials, curl 7.88 sends in the clear, which is refused."""
    data = content(3 * MEGABYTE)
    (site.here / "up").write_bytes(data)
    options = ["--ssl-reqd", "--tls-max", version]
    curl(site, *options, "-T", "up", f"{site.url}/")
    assert (site.there / "up").read_bytes() == data
    assert curl(site, *options, f"{site.url}/up").output == data
    assert curl(site, *options, "--list-only", f"{site.url}/").lines == ["up"]


@VERSIONS
def test_curl_begins_with_tls(site: SecureSite, version: str) -> None:
    site.give("file", MEGABYTE)
    fetched = curl(site, "--tls-max", version, f"{site.implicit_url}/file").output
    assert fetched == (site.there / "file").read_bytes()


def test_curl_fetches_many_files(site: SecureSite) -> None:
    """More than there are tickets of the control connection."""
    for number in range(12):
        site.give(f"file{number}", 1000 + number)
    curl(site, "--ssl-reqd", f"{site.url}/file[0-11]", "-o", "#1")
    for number in range(12):
        assert (site.here / str(number)).stat().st_size == 1000 + number


def test_curl_in_the_clear(site: SecureSite) -> None:
    assert curl(site, f"{site.url}/", check=False).code == 67  # login denied
    assert "-> PASS" not in site.log()


def test_curl_without_the_session(site: SecureSite) -> None:
    site.give("file", 1000)
    refused = curl(site, "--ssl-reqd", "--no-sessionid", f"{site.url}/file", check=False)
    assert refused.code != 0
    assert not refused.output
    assert "did not resume the TLS session" in site.log()


def test_curl_does_not_know_the_certificate(site: SecureSite) -> None:
    refused = site.run(find("curl"), "-q", "-sS", "--ssl-reqd", f"{site.url}/", check=False)
    assert refused.code == 60


# -- lftp ----------------------------------------------------------------------------------------


def lftp(site: SecureSite, *script: str, check: bool = True) -> Ended:
    settings = (
        "set cmd:fail-exit yes",
        "set net:max-retries 1",
        "set net:timeout 30",
        f"set ssl:ca-file {site.authority}",
        "set ftp:ssl-force yes",
        "set ftp:ssl-protect-data yes",
    )
    opened = f"open -u {USER},{PASSWORD.replace(' ', chr(92) + ' ')} {site.url}"
    command = (find("lftp"), "--norc", "-c", "; ".join([*settings, opened, *script]))
    return site.run(*command, check=check)


def test_lftp(site: SecureSite) -> None:
    data = content(3 * MEGABYTE)
    (site.here / "up").write_bytes(data)
    lftp(site, "put up", "mkdir folder", "mirror -R . folder", "get up -o down", "mirror . copy")
    assert (site.there / "up").read_bytes() == data
    assert (site.there / "folder" / "up").read_bytes() == data
    assert (site.here / "down").read_bytes() == data
    assert (site.here / "copy" / "up").read_bytes() == data


# -- ftplib --------------------------------------------------------------------------------------


class Resuming(ftplib.FTP_TLS):
    """What many wrote for themselves: ftplib does not resume the session by itself."""

    def ntransfercmd(
        self, cmd: str, rest: int | str | None = None
    ) -> tuple[socket.socket, int | None]:
        sock, size = ftplib.FTP.ntransfercmd(self, cmd, rest)
        assert isinstance(self.sock, ssl.SSLSocket)
        secure = self.context.wrap_socket(
            sock, server_hostname=self.host, session=self.sock.session
        )
        return secure, size


@contextlib.contextmanager
def ftplib_client(
    site: SecureSite, kind: type[ftplib.FTP_TLS], newest: ssl.TLSVersion
) -> Iterator[ftplib.FTP_TLS]:
    with kind(context=client_context(newest), timeout=30) as ftp:
        ftp.connect(site.daemon.host, site.daemon.port)
        ftp.login(USER, PASSWORD)
        ftp.prot_p()
        ftp.cwd(site.there.name)
        yield ftp


@pytest.mark.parametrize("newest", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_ftplib(site: SecureSite, newest: ssl.TLSVersion) -> None:
    data = content(3 * MEGABYTE)
    with ftplib_client(site, Resuming, newest) as ftp:
        ftp.storbinary("STOR up", io.BytesIO(data))
        assert (site.there / "up").read_bytes() == data
        fetched = io.BytesIO()
        ftp.retrbinary("RETR up", fetched.write)
        assert fetched.getvalue() == data
        assert ftp.nlst() == ["up"]
        with pytest.raises(ftplib.error_perm, match="534"):
            ftp.ccc()
        with pytest.raises(ftplib.error_perm, match="534"):
            ftp.prot_c()


def test_ftplib_as_it_comes(site: SecureSite) -> None:
    """It does not resume the session, and nothing is uploaded that it takes for uploaded."""
    with (
        pytest.raises((OSError, ftplib.Error)),
        ftplib_client(site, ftplib.FTP_TLS, ssl.TLSVersion.TLSv1_3) as ftp,
    ):
        ftp.storbinary("STOR up", io.BytesIO(content(MEGABYTE)))
    assert not (site.there / "up").exists()
