"""The commands with TLS: protected, checked, and loud where the user gives that up."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
import trustme

from .conftest import Client, running_daemon

WARNING = b"WARNING: --insecure"
LONG_AGO = datetime(2001, 1, 1, tzinfo=UTC)
IN_2002 = datetime(2002, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Secure:
    """A daemon that lets nothing through without TLS, and a directory of it."""

    path: Path
    address: str
    name: str
    authority: Path

    @property
    def cacert(self) -> tuple[str, str]:
        return "--cacert", str(self.authority)

    def url(self, name: str = "", *, scheme: str = "ftpes", login: str = "") -> str:
        return f"{scheme}://{login}{self.address}/{self.name}/{name}"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, str, Path]]:
    """Run xftpd with TLS; give its root, HOST:PORT and the authority's certificate."""
    root = tmp_path_factory.mktemp("root")
    kept = tmp_path_factory.mktemp("certificates")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(kept / "ca.pem"))
    options = _certificate(kept, authority.issue_cert("127.0.0.1"))
    options += ["--require-tls", "data", "--user", "joe:open sesame"]
    with running_daemon(root, *options) as address:
        yield root, address, kept / "ca.pem"


def _certificate(folder: Path, certificate: trustme.LeafCert) -> list[str]:
    """Write a certificate; give the options of xftpd for it."""
    certificate.private_key_and_cert_chain_pem.write_to_path(str(folder / "cert.pem"))
    return ["--tls-cert", str(folder / "cert.pem"), "--tls-key", str(folder / "cert.pem")]


@pytest.fixture
def secure(daemon: tuple[Path, str, Path], tmp_path: Path) -> Secure:
    """Give a directory of the daemon for this test only."""
    root, address, authority = daemon
    path = root / tmp_path.name
    path.mkdir()
    return Secure(path, address, path.name, authority)


def test_every_command_that_moves_files(secure: Secure, xftp: Client) -> None:
    data = bytes(range(256)) * 3000
    (xftp.here / "tree").mkdir()
    for name in ("a", "b"):
        (xftp.here / "tree" / name).write_bytes(data)

    xftp("mirror", *secure.cacert, "tree", secure.url())
    names = xftp("ls", *secure.cacert, secure.url()).stdout
    done = xftp("get", "--json", "-n4", *secure.cacert, "-o", "back", secure.url("a"))
    xftp("put", *secure.cacert, "back", secure.url("c"))

    assert names.split() == [b"a", b"b"]
    assert (xftp.here / "back").read_bytes() == data
    assert (secure.path / "c").read_bytes() == data
    report = json.loads(done.stdout)
    assert len(report["connections"]) == 4
    assert {each["socket"]["tls"] for each in report["connections"]} == {"TLSv1.3"}


def test_a_plain_url_with_tls(secure: Secure, xftp: Client) -> None:
    (secure.path / "a").write_bytes(b"here")

    refused = xftp("get", secure.url("a", scheme="ftp"), expect=3)
    xftp("get", "--tls", *secure.cacert, secure.url("a", scheme="ftp"))

    assert b"TLS" in refused.stderr
    assert (xftp.here / "a").read_bytes() == b"here"


def test_a_password_from_netrc(secure: Secure, xftp: Client) -> None:
    netrc = xftp.here / "netrc"
    netrc.write_text('machine 127.0.0.1 login joe password "open sesame"\n')
    done = xftp("ls", "-v", "--netrc-file", str(netrc), *secure.cacert, secure.url())
    assert b"> USER joe" in done.stderr
    assert b"sesame" not in done.stderr


def test_shell(secure: Secure, xftp: Client) -> None:
    (secure.path / "a").write_bytes(b"here")
    words = f"open {secure.url()}\nstatus\nget a\nquote PROT C\nls\nbye\n"

    done = xftp("shell", *secure.cacert, stdin=words.encode(), expect=1)

    assert b"protection: TLSv1." in done.stdout
    assert b"without its protection" in done.stderr, "the only word that fails"
    assert done.stderr.count(b"xftp:") == 1
    assert (xftp.here / "a").read_bytes() == b"here"


def test_a_certificate_that_is_not_known_here(secure: Secure, xftp: Client) -> None:
    """One sentence, status 3, and no second try."""
    done = xftp("get", "--retries", "3", secure.url("a", login="joe:secret@"), expect=3)
    assert done.stderr.count(b"\n") == 1
    assert b"the server's certificate is signed by an authority that is not known" in done.stderr


@pytest.mark.parametrize(
    ("names", "is_old", "fault"),
    [(("127.0.0.1",), True, b"has expired"), (("other.example",), False, b"for another host")],
    ids=["expired", "another host"],
)
def test_a_wrong_certificate(
    xftp: Client, tmp_path: Path, names: tuple[str, ...], is_old: bool, fault: bytes
) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    certificate = authority.issue_cert(
        *names, not_before=LONG_AGO if is_old else None, not_after=IN_2002 if is_old else None
    )
    (tmp_path / "root").mkdir()
    with running_daemon(tmp_path / "root", *_certificate(tmp_path, certificate)) as address:
        done = xftp("ls", "--cacert", str(tmp_path / "ca.pem"), f"ftpes://{address}/", expect=3)
    assert done.stderr.count(b"\n") == 1
    assert fault in done.stderr


@pytest.mark.parametrize("quiet", [(), ("-q",)], ids=["as it is", "quiet"])
def test_insecure_is_loud(secure: Secure, xftp: Client, quiet: tuple[str, ...]) -> None:
    (secure.path / "a").write_bytes(b"here")
    done = xftp("get", "--insecure", *quiet, secure.url("a"))
    assert done.stderr.count(WARNING) == 1
    assert (xftp.here / "a").read_bytes() == b"here"


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("get", ("--cacert", "ca.pem")),
        ("get", ("--insecure",)),
        ("get", ("--clear-data",)),
        ("mirror", ("--cacert", "ca.pem")),
        ("shell", ("--cacert", "ca.pem")),
    ],
)
def test_options_of_tls_without_tls(xftp: Client, command: str, option: tuple[str, ...]) -> None:
    """Who gives them believes that there is TLS: nothing is sent."""
    more = ["here"] if command == "mirror" else []
    done = xftp(command, *option, "ftp://joe:secret@127.0.0.1:9/a", *more, expect=2)
    assert b"is for sessions with TLS" in done.stderr


def test_a_missing_file_of_authorities(secure: Secure, xftp: Client) -> None:
    done = xftp("get", "--cacert", "nowhere.pem", secure.url("a"), expect=4)
    assert b"nowhere.pem: No such file" in done.stderr


def test_a_server_without_tls_hears_no_password(xftp: Client, tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    log = tmp_path / "log"
    with log.open("wb") as errors, running_daemon(tmp_path / "root", "-vv", log=errors) as address:
        done = xftp("ls", "--tls", f"ftp://joe:secret@{address}/", expect=3)
    assert b"offers no TLS" in done.stderr
    assert "-> AUTH TLS" in log.read_text()
    assert "-> USER" not in log.read_text()
