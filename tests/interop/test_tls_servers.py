"""xftp, the command, against vsftpd with TLS, which wants every data connection to resume."""

from __future__ import annotations

import contextlib
import json
import os
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import trustme

from .programs import IPV4, XFTP, Daemon, Ended, Site, content
from .servers import vsftpd

pytestmark = pytest.mark.interop

MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Protected:
    """A place on a server with TLS."""

    site: Site
    scheme: str
    authority: Path

    def url(self, name: str = "") -> str:
        host, port = self.site.address
        return f"{self.scheme}://{host}:{port}/{self.site.there.name}/{name}"

    def xftp(self, command: str, *arguments: str, stdin: bytes = b"") -> Ended:
        return self.site.run(
            *XFTP, command, "--cacert", str(self.authority), *arguments, stdin=stdin
        )


@contextlib.contextmanager
def _running(folder: Path, *, implicit: bool) -> Iterator[tuple[Daemon, Path]]:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "ca.pem"))
    certificate = authority.issue_cert(IPV4, key_type=trustme.KeyType.RSA)
    certificate.private_key_and_cert_chain_pem.write_to_path(str(folder / "cert.pem"))
    settings = {
        "ssl_enable": "YES",
        "implicit_ssl": "YES" if implicit else "NO",
        "allow_anon_ssl": "YES",
        "force_anon_logins_ssl": "YES",
        "force_anon_data_ssl": "YES",
        "require_ssl_reuse": "YES",
        "ssl_ciphers": "HIGH",
        "rsa_cert_file": str(folder / "cert.pem"),
        "rsa_private_key_file": str(folder / "cert.pem"),
        "strict_ssl_read_eof": "YES",  # an upload without close_notify fails
        "strict_ssl_write_shutdown": "YES",  # and so does a download
    }
    context = ssl.create_default_context(cafile=folder / "ca.pem") if implicit else None
    with vsftpd(IPV4, folder, settings, context) as daemon:
        yield daemon, folder / "ca.pem"


@pytest.fixture(scope="module")
def explicit_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Daemon, Path]]:
    with _running(tmp_path_factory.mktemp("explicit"), implicit=False) as running:
        yield running


@pytest.fixture(scope="module")
def implicit_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Daemon, Path]]:
    with _running(tmp_path_factory.mktemp("implicit"), implicit=True) as running:
        yield running


@pytest.fixture(params=["ftpes", "ftps"])
def protected(request: pytest.FixtureRequest, tmp_path: Path) -> Protected:
    """Give a place on a server that begins with TLS, or is asked for it."""
    scheme = request.param
    name = "implicit_server" if scheme == "ftps" else "explicit_server"
    daemon, authority = request.getfixturevalue(name)
    there = daemon.root / tmp_path.name
    there.mkdir()
    there.chmod(0o777)
    here = tmp_path / "here"
    here.mkdir()
    return Protected(Site(daemon, there, here, 0), scheme, authority)


@pytest.mark.parametrize("how", ["--passive", "--active"])
def test_there_and_back(protected: Protected, how: str) -> None:
    data = protected.site.make("a", MEGABYTE + 17)

    protected.xftp("put", how, "a", protected.url())
    (protected.site.there / "a").chmod(0o644)
    ended = protected.xftp("get", how, "--json", "-o", "b", protected.url("a"))

    assert (protected.site.here / "b").read_bytes() == data
    (connection,) = json.loads(ended.text)["connections"]
    assert connection["socket"]["tls"].startswith("TLSv1.")


def test_list(protected: Protected) -> None:
    protected.site.give("two words", 10)
    assert protected.xftp("ls", protected.url()).lines == ["two words"]


def test_several_sessions_for_one_file(protected: Protected) -> None:
    """Ranges of it, each over a session of its own with its own TLS."""
    data = protected.site.give("a", 4 * MEGABYTE)
    (protected.site.there / "a").chmod(0o644)

    ended = protected.xftp("get", "-n", "3", "--json", "-v", protected.url("a"))

    assert (protected.site.here / "a").read_bytes() == data
    assert len(json.loads(ended.text)["connections"]) == 3
    assert ended.errors.count("* TLSv1.") == 3


def test_mirror(protected: Protected) -> None:
    tree = protected.site.here / "tree"
    (tree / "inner").mkdir(parents=True)
    for number in range(4):
        (tree / "inner" / str(number)).write_bytes(content(50_000, number))

    protected.xftp("mirror", "tree", protected.url("copy/"))
    for folder, _, names in os.walk(protected.site.there):
        for name in names:
            (Path(folder) / name).chmod(0o644)
    protected.xftp("mirror", protected.url("copy/"), "back")

    for number in range(4):
        wanted = (tree / "inner" / str(number)).read_bytes()
        assert (protected.site.here / "back" / "inner" / str(number)).read_bytes() == wanted
