"""TLS on the control connection, and what it means for data connections (RFC 4217)."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support import RawClient, running_server
from tests.tls import HOST, authority, write_certificate
from xftp.errors import FileError
from xftp.protocol.addresses import Endpoint
from xftp.server import Server
from xftp.server.tls import ServerTls, TlsPolicy
from xftp.server.watch import FinishedTransfer
from xftp.transport import accepting
from xftp.transport.active import ActiveChannel
from xftp.transport.passive import PassiveChannel
from xftp.transport.plain import PlainReceiver
from xftp.transport.tls import TlsConnection

from .support import codes, dial, extended_port, multiple_ports, pattern, plain, until
from .tls_client import SecureClient, secure_session, server_tls

VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]
EITHER_VERSION = pytest.mark.parametrize("version", VERSIONS, ids=["tls1.2", "tls1.3"])
DATA = pattern(300_000)


@pytest.fixture
async def secure(root: Path, tmp_path: Path) -> AsyncIterator[Server]:
    """A server with a certificate, on a port for each way to begin."""
    async with running_server(root, tls=server_tls(tmp_path)) as server:
        await server.start_implicit(HOST)
        yield server


async def feature_names(client: RawClient) -> set[str]:
    return {line.strip() for line in (await client.command("FEAT")).lines}


# -- the commands ------------------------------------------------------------------------------


@EITHER_VERSION
async def test_transfers(secure: Server, root: Path, version: ssl.TLSVersion) -> None:
    (root / "file").write_bytes(DATA)
    async with secure_session(secure.server_port, version) as client:
        for _ in range(4):  # more than there are tickets of the control connection
            assert await client.receive("RETR file") == DATA
        await client.store("STOR up", DATA)
        assert (root / "up").read_bytes() == DATA
        assert b"file" in await client.receive("MLSD")


async def test_active_transfers(secure: Server, root: Path) -> None:
    """The server dials, and is the TLS server all the same (RFC 4217 section 7)."""
    (root / "file").write_bytes(DATA)
    async with secure_session(secure.server_port) as client:
        passive = PassiveChannel.listen(HOST, HOST, expected=1, tls=client.data_tls)
        port = passive.endpoint.port
        assert (await client.command(f"EPRT |1|{HOST}|{port}|")).code == 200
        assert await client.receive("RETR file", passive) == DATA


async def test_commands_in_a_flight(secure: Server) -> None:
    """What comes right behind the handshake is executed in order."""
    client = await SecureClient.explicit(secure.server_port)
    client.send("USER anonymous", "PASS me@here", "PBSZ 0", "PROT P", "PWD", "QUIT")
    assert [(await client.reply()).code for _ in range(6)] == [331, 230, 200, 200, 257, 221]
    assert await client.reader.read() == b""
    await client.close()


async def test_features(secure: Server, root: Path) -> None:
    named = {"AUTH TLS", "PBSZ", "PROT"}
    client = await RawClient.connect(HOST, secure.server_port)
    assert named <= await feature_names(client)
    assert "AUTH" in (await client.command("HELP")).text
    await client.close()
    async with running_server(root) as clear:
        client = await RawClient.connect(HOST, clear.server_port)
        assert not named & await feature_names(client)
        assert "AUTH" not in (await client.command("HELP")).text
        for command in ("AUTH TLS", "PBSZ 0", "PROT P", "CCC"):
            assert (await client.command(command)).code == 502
        await client.close()


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("AUTH", 501),
        ("AUTH SSL", 504),
        ("AUTH TLS-P", 504),
        ("AUTH GSSAPI", 504),
        ("PBSZ 0", 503),
        ("PROT P", 503),
        ("CCC", 503),
    ],
)
async def test_before_tls(secure: Server, command: str, code: int) -> None:
    client = await RawClient.connect(HOST, secure.server_port)
    assert (await client.command(command)).code == code
    await client.log_in()
    await client.close()


@pytest.mark.parametrize(
    ("commands", "code"),
    [
        (["AUTH TLS"], 503),
        (["PROT P"], 503),
        (["PBSZ"], 501),
        (["PBSZ x"], 501),
        (["PBSZ 4294967296"], 501),
        (["PBSZ 1000"], 200),
        (["PBSZ 0", "PROT"], 501),
        (["PBSZ 0", "PROT S"], 536),
        (["PBSZ 0", "PROT E"], 536),
        (["PBSZ 0", "PROT X"], 504),
        (["PBSZ 0", "PROT C"], 200),
        (["CCC"], 534),
        (["REIN"], 502),
    ],
)
async def test_within_tls(secure: Server, commands: list[str], code: int) -> None:
    client = await SecureClient.explicit(secure.server_port)
    codes = [(await client.command(command)).code for command in commands]
    assert codes[-1] == code
    await client.log_in()
    await client.close()


async def test_buffer_size_is_nothing(secure: Server) -> None:
    client = await SecureClient.explicit(secure.server_port)
    assert "PBSZ=0" in (await client.command("PBSZ 1000")).text
    await client.close()


async def test_a_login_in_the_clear_is_over_with_tls(secure: Server) -> None:
    client = await SecureClient.connect(HOST, secure.server_port)
    await client.log_in()
    assert (await client.command("AUTH TLS")).code == 234
    await client.begin_tls()
    assert (await client.command("PWD")).code == 530
    await client.log_in()
    await client.close()


async def test_clear_data_unless_asked(secure: Server, root: Path) -> None:
    (root / "file").write_bytes(DATA)
    client = await SecureClient.explicit(secure.server_port)
    await client.log_in()
    await client.command("TYPE I")
    data = await dial(extended_port((await client.command("EPSV")).text))
    client.send("RETR file")
    assert await data.read() == DATA
    await client.close()


async def test_another_level_needs_another_data_connection(secure: Server) -> None:
    async with secure_session(secure.server_port) as client:
        assert (await client.command("EPSV")).code == 229
        assert (await client.command("PROT C")).code == 200
        assert (await client.command("NLST")).code == 425


async def test_the_operator_and_the_user_see_it(secure: Server) -> None:
    async with secure_session(secure.server_port) as client:
        (session,) = secure.sessions
        assert str(session.describe()["tls"]).startswith("TLSv1.3 TLS_")
        assert "TLSv1.3" in (await client.command("STAT")).text
    clear = await RawClient.connect(HOST, secure.server_port)
    await until(lambda: len(secure.sessions) == 1)
    assert secure.sessions[0].describe()["tls"] is None
    await clear.close()


async def test_the_operator_sees_which_data_was_protected(secure: Server) -> None:
    ended: list[FinishedTransfer] = []
    secure.shared.watch.listeners.append(ended.append)
    async with secure_session(secure.server_port) as client:
        await client.store("STOR up", DATA)
        assert (await client.command("PROT C")).code == 200
        data = await plain(client)
        client.send("RETR up")
        assert await data.read() == DATA
        assert await codes(client, 2) == [150, 226]
    assert [(each.path, each.is_protected) for each in ended] == [("/up", True), ("/up", False)]


# -- what has to be protected ------------------------------------------------------------------


async def test_no_login_in_the_clear(root: Path, tmp_path: Path) -> None:
    async with running_server(root, tls=server_tls(tmp_path, requires_control=True)) as server:
        client = await RawClient.connect(HOST, server.server_port)
        assert (await client.command("USER anonymous")).code == 530
        assert (await client.command("PASS secret")).code == 503
        assert (await client.command("FEAT")).code == 211
        await client.close()
        async with secure_session(server.server_port) as secure:
            assert (await secure.command("PROT C")).code == 200


async def test_no_data_in_the_clear(root: Path, tmp_path: Path) -> None:
    (root / "file").write_bytes(DATA)
    tls = server_tls(tmp_path, requires_control=True, requires_data=True)
    async with running_server(root, tls=tls) as server:
        client = await SecureClient.explicit(server.server_port)
        await client.log_in()
        assert (await client.command("EPSV")).code == 229
        assert (await client.command("RETR file")).code == 521
        assert (await client.command("PBSZ 0")).code == 200
        assert (await client.command("PROT C")).code == 534
        await client.close()
        async with secure_session(server.server_port) as client:
            assert await client.receive("RETR file") == DATA


async def test_the_oldest_version(root: Path, tmp_path: Path) -> None:
    tls = server_tls(tmp_path, minimum_version=ssl.TLSVersion.TLSv1_3)
    async with running_server(root, tls=tls) as server:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await SecureClient.explicit(server.server_port, ssl.TLSVersion.TLSv1_2)
        await (await SecureClient.explicit(server.server_port)).close()


# -- whose data connection it is ---------------------------------------------------------------


@EITHER_VERSION
@pytest.mark.parametrize("has_session", [True, False])
async def test_only_the_own_session_opens_data_connections(
    secure: Server,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    version: ssl.TLSVersion,
    has_session: bool,
) -> None:
    """Another client of the same server, whose session is as good as this one's, is refused."""
    monkeypatch.setattr(accepting, "REFUSED_S", 0.1)
    (root / "file").write_bytes(DATA)
    async with (
        secure_session(secure.server_port, version) as client,
        secure_session(secure.server_port, version) as thief,
    ):
        tls = thief.data_tls if has_session else thief.data_tls._replace(session=lambda: None)
        channel = await client.dial(tls)
        client.send("RETR file")
        with pytest.raises(Exception) as caught:
            await PlainReceiver(channel, lambda *_: None, len(DATA)).run()
        assert caught.type is not TimeoutError
        assert (await client.reply()).code == 150
        reply = await client.reply()
        assert (reply.code, "did not resume" in reply.text) == (522, True)
        assert await client.receive("RETR file") == DATA


async def test_no_session_is_needed_if_so_configured(root: Path, tmp_path: Path) -> None:
    (root / "file").write_bytes(DATA)
    async with (
        running_server(root, tls=server_tls(tmp_path, requires_resumed=False)) as server,
        secure_session(server.server_port) as client,
    ):
        channel = await client.dial(client.data_tls._replace(session=lambda: None))
        assert await client.receive("RETR file", channel) == DATA


async def test_a_data_connection_in_the_clear(
    secure: Server, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accepting, "REFUSED_S", 0.1)
    async with secure_session(secure.server_port) as client:
        data = await dial(extended_port((await client.command("EPSV")).text))
        client.send("STOR up")
        data.writer.write(b"in the clear, for all to read and change")
        assert (await client.reply()).code == 150
        assert (await client.reply()).code == 522
        assert not (root / "up").exists()


async def test_several_connections_resume_one_session(secure: Server, root: Path) -> None:
    (root / "file").write_bytes(DATA)
    async with secure_session(secure.server_port) as client:
        assert (await client.command("MULT")).code == 200
        _, ports = multiple_ports((await client.command("MPSV")).text)
        channel = ActiveChannel([Endpoint(HOST, port) for port in ports], tls=client.data_tls)
        async with asyncio.timeout(20):
            while len(channel.connections) < len(ports):  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        for connection in channel.connections:
            assert isinstance(connection, TlsConnection)
            assert connection.observed["tls_resumed"] is True
        channel.close()


# -- the end of an upload ----------------------------------------------------------------------


@pytest.mark.parametrize("required", [True, False])
async def test_a_cut_upload(root: Path, tmp_path: Path, required: bool) -> None:
    async with (
        running_server(root, tls=server_tls(tmp_path, requires_close_notify=required)) as server,
        secure_session(server.server_port) as client,
    ):
        channel = await client.dial()
        client.send("STOR up")
        await channel.wait_for_first()
        channel.connections[0].send(memoryview(DATA[:5000]))
        channel.connections[0].sock.close()  # without the close_notify
        assert (await client.reply()).code == 150
        assert (await client.reply()).code == (426 if required else 226)
        assert (root / "up").exists() is not required


# -- the certificate ---------------------------------------------------------------------------


async def test_a_new_certificate(root: Path, tmp_path: Path) -> None:
    tls = server_tls(tmp_path)
    async with running_server(root, tls=tls) as server:
        old = await SecureClient.explicit(server.server_port)
        leaf = authority().issue_cert(HOST, common_name="the next one")
        write_certificate(tmp_path, leaf)
        tls.reload()
        new = await SecureClient.explicit(server.server_port)
        serials = [
            client.writer.get_extra_info("ssl_object").getpeercert()["serialNumber"]
            for client in (old, new)
        ]
        assert serials[0] != serials[1]
        for client in (old, new):
            await client.log_in()
            await client.protect_data()
            await client.receive("NLST")
            await client.close()
        (tmp_path / "key.pem").write_text("nonsense")
        with pytest.raises(FileError, match="no certificate with its private key"):
            tls.reload()
        await (await SecureClient.explicit(server.server_port)).close()


@pytest.mark.parametrize(
    "key",
    [b"", b"nonsense", None],
    ids=["empty", "nonsense", "of another certificate"],
)
def test_a_key_that_does_not_fit(tmp_path: Path, key: bytes | None) -> None:
    chain, key_file = write_certificate(tmp_path)
    other = authority().issue_cert(HOST)
    key_file.write_bytes(other.private_key_pem.bytes() if key is None else key)
    with pytest.raises(FileError, match="no certificate with its private key"):
        ServerTls(chain, key_file, TlsPolicy())


def test_an_encrypted_key_is_not_asked_for(tmp_path: Path) -> None:
    from cryptography.hazmat.primitives import serialization

    chain, key_file = write_certificate(tmp_path)
    key = serialization.load_pem_private_key(key_file.read_bytes(), None)
    key_file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"secret"),
        )
    )
    with pytest.raises(FileError, match="the key is encrypted"):
        ServerTls(chain, key_file, TlsPolicy())


def test_a_certificate_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="nowhere"):
        ServerTls(tmp_path / "nowhere", None, TlsPolicy())


def test_both_in_one_file(tmp_path: Path) -> None:
    chain, key = write_certificate(tmp_path)
    both = tmp_path / "both.pem"
    both.write_bytes(chain.read_bytes().rstrip() + b"\n" + key.read_bytes().rstrip())
    tls = ServerTls(both, None, TlsPolicy())
    assert tls.new_context().minimum_version == ssl.TLSVersion.TLSv1_2
    tls.close()
