"""Our client and our server with TLS: every way that files and listings move."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import xftp
from xftp.client.series import Pair
from xftp.errors import XftpError
from xftp.server import Server
from xftp.server.tls import ServerTls, TlsPolicy

from ..support import running_server
from .tls_server import authority, trusted

DATA = bytes(range(256)) * 4000 + b"end"
HOST = "127.0.0.1"


@dataclass(frozen=True)
class Place:
    """A server that lets nothing through without TLS, and where its files are."""

    server: Server
    root: Path
    trusted: Path

    def connect(self, **options: object) -> object:
        url = f"ftpes://{HOST}:{self.server.server_port}/"
        tls = xftp.TlsOptions(ca_file=self.trusted)
        return xftp.connect(url, options=xftp.Options(tls=tls, **options))  # type: ignore[arg-type]


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    root = tmp_path / "root"
    root.mkdir()
    certificate = authority().issue_cert(HOST)
    certificate.private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "cert.pem"))
    policy = TlsPolicy(requires_control=True, requires_data=True)
    tls = ServerTls(tmp_path / "cert.pem", None, policy)
    try:
        async with running_server(root, tls=tls) as server:
            yield Place(server, root, trusted(tmp_path))
    finally:
        tls.close()


@pytest.mark.parametrize(
    ("count", "passive"),
    [(1, True), (1, False), (4, True), (4, False), (8, True)],
)
async def test_there_and_back(place: Place, tmp_path: Path, count: int, passive: bool) -> None:
    (tmp_path / "a").write_bytes(DATA)
    async with place.connect(connections=count, passive=passive) as session:  # type: ignore[attr-defined]
        assert session.protection.startswith("TLSv1.")
        up = await session.put(tmp_path / "a", "there")
        down = await session.get("there", tmp_path / "b")
        assert [entry.name for entry in await session.list()] == ["there"]
    assert (place.root / "there").read_bytes() == DATA
    assert (tmp_path / "b").read_bytes() == DATA
    assert len(up.connections) == len(down.connections) == count
    for report in (up, down):
        assert all(each.socket["tls"].startswith("TLSv1.") for each in report.connections)


async def test_tls_1_2(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its sessions, and how a stream ends, are others than those of TLS 1.3."""
    monkeypatch.setattr("xftp.client.tls._context", _only_tls_1_2)
    (tmp_path / "a").write_bytes(DATA)
    async with place.connect(connections=4) as session:  # type: ignore[attr-defined]
        assert session.protection.startswith("TLSv1.2")
        await session.put(tmp_path / "a", "there")
        await session.get("there", tmp_path / "b")
        assert [entry.name for entry in await session.list()] == ["there"]
    assert (tmp_path / "b").read_bytes() == DATA


def _only_tls_1_2(ca_file: Path, *_: object) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=ca_file)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    return context


async def test_series(place: Place, tmp_path: Path) -> None:
    pairs = [Pair(tmp_path / str(number), f"there-{number}") for number in range(5)]
    for number, pair in enumerate(pairs):
        pair.here.write_bytes(DATA[: number * 10_000])
    back = [Pair(tmp_path / f"back-{pair.here.name}", pair.there) for pair in pairs]
    async with place.connect(connections=4) as session:  # type: ignore[attr-defined]
        assert not (await session.move_series("upload", pairs)).failures
        assert not (await session.move_series("download", back)).failures
    for pair, other in zip(pairs, back, strict=True):
        assert other.here.read_bytes() == pair.here.read_bytes()


async def test_streams(place: Place) -> None:
    waiting, got = [DATA, b""], bytearray()
    async with place.connect() as session:  # type: ignore[attr-defined]
        await session.put_stream(lambda: waiting.pop(0), "there")
        await session.get_stream("there", got.extend)
    assert bytes(got) == DATA


async def test_data_in_the_clear_is_refused_by_the_server(place: Place, tmp_path: Path) -> None:
    (place.root / "there").write_bytes(DATA)
    tls = xftp.TlsOptions(ca_file=place.trusted, protects_data=False)
    url = f"ftpes://{HOST}:{place.server.server_port}/"
    with pytest.raises(XftpError, match="PROT"):
        async with xftp.connect(url, options=xftp.Options(tls=tls)) as session:
            await session.get("there", tmp_path / "b")
    assert not (tmp_path / "b").exists()


async def test_a_connection_that_resumes_nothing_is_refused(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which shows that the other tests' connections did resume."""
    monkeypatch.setattr("xftp.client.tls.ControlTls._session", lambda _: None)
    (place.root / "there").write_bytes(DATA)
    with pytest.raises(XftpError):
        async with place.connect(connections=1) as session:  # type: ignore[attr-defined]
            await session.get("there", tmp_path / "b")
    assert not (tmp_path / "b").exists()


async def test_newer_tickets_come_with_data(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A transfer that takes longer than a ticket lasts can still replace its connections."""
    (place.root / "there").write_bytes(DATA)
    async with place.connect(connections=2) as session:  # type: ignore[attr-defined]
        await session.get("there", tmp_path / "a")
        tls = session._dialogue.control.tls
        own = tls._session()
        assert own.id == tls._own_session().id
        monkeypatch.setattr("xftp.client.tls._WORN", -1.0)
        newer = tls._session()
        assert newer.id != own.id
        monkeypatch.setattr(tls, "_session", lambda: newer)
        monkeypatch.setattr("xftp.client.tls._WORN", 0.9)
        await session.get("there", tmp_path / "b")
    assert (tmp_path / "b").read_bytes() == DATA


async def test_a_session_that_is_old_is_made_anew(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place.root / "folder").mkdir()
    (place.root / "folder" / "there").write_bytes(DATA)
    async with place.connect(connections=2) as session:  # type: ignore[attr-defined]
        await session.cwd("folder")
        before = session._dialogue
        await session.get("there", tmp_path / "a")
        assert session._dialogue is before
        monkeypatch.setattr("xftp.client.tls._WORN", -1.0)
        await session.get("there", tmp_path / "b")
        assert session._dialogue is not before
    assert (tmp_path / "b").read_bytes() == DATA
