"""TLS of the control connection: asked for, checked, and never done without."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trustme

from xftp.client.memory import KnownServer, MemoryFile
from xftp.client.options import Options
from xftp.client.session import open_session
from xftp.client.tls import TlsError, TlsOptions, client_context
from xftp.errors import ArgumentError, ConnectError, FileError, LoginError

from .scripted import HOST, Conversation, mpsv, receives, scripted, sends
from .tls_server import (
    secure_session,
    self_signed_context,
    server_context,
    tls_server,
    upgrade,
)

DATA = bytes(range(256)) * 50
OURS = "220 XFTP server ready."
FEAT = "211-\r\n MULT Connections;\r\n SIZE\r\n MDTM\r\n MFMT\r\n211 end"
SECRET = {"user": "joe", "password": "open sesame"}
VERSIONS = pytest.mark.parametrize(
    "version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["tls12", "tls13"]
)


def limited(version: ssl.TLSVersion) -> ssl.SSLContext:
    context = server_context()
    context.minimum_version = context.maximum_version = version
    return context


async def refused(url: str, *, expect: type[ConnectError] = TlsError, **options: Any) -> str:
    """Open a session that must fail; give the error's sentence."""
    with pytest.raises(expect) as caught:
        await open_session(url, **SECRET, options=Options(**options))
    return str(caught.value)


def says_secret(heard: list[str]) -> bool:
    """Tell whether a name or a password is in what a server heard."""
    return any(secret in line for line in heard for secret in SECRET.values())


# -- what is said, and when ---------------------------------------------------------------------


@VERSIONS
async def test_nothing_but_auth_is_said_in_the_clear(
    tmp_path: Path, version: ssl.TLSVersion
) -> None:
    script = {"RETR": sends(DATA)}
    async with tls_server(script, context=limited(version)) as server:
        async with secure_session(server, tmp_path, login=SECRET) as session:
            await session.get("a", tmp_path / "a")
        assert server.before_tls == ["AUTH TLS"]
        assert server.heard[:4] == ["USER joe", "PASS open sesame", "PBSZ 0", "PROT P"]
    assert (tmp_path / "a").read_bytes() == DATA
    assert server.resumed == [True]


@VERSIONS
async def test_implicit(tmp_path: Path, version: ssl.TLSVersion) -> None:
    received: list[bytes] = []
    (tmp_path / "a").write_bytes(DATA)
    script = {"STOR": receives(received)}
    async with (
        tls_server(script, context=limited(version), is_implicit=True) as server,
        secure_session(server, tmp_path, scheme="ftps") as session,
    ):
        await session.put(tmp_path / "a", "a")
    assert received == [DATA]
    assert server.resumed == [True]
    assert "AUTH TLS" not in server.heard


@VERSIONS
async def test_the_server_dials(tmp_path: Path, version: ssl.TLSVersion) -> None:
    """The client is the TLS client on the connection that it accepts."""
    async with (
        tls_server({"RETR": sends(DATA)}, context=limited(version)) as server,
        secure_session(server, tmp_path, passive=False) as session,
    ):
        await session.get("a", tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == DATA
    assert server.resumed == [True]


async def test_a_plain_url_is_protected_where_that_is_required(tmp_path: Path) -> None:
    async with (
        tls_server() as server,
        secure_session(server, tmp_path, scheme="ftp", tls={"required": True}),
    ):
        assert server.before_tls == ["AUTH TLS"]


async def test_only_commands_protected(tmp_path: Path) -> None:
    async with tls_server({"RETR": sends(DATA)}) as server:
        chosen = {"protects_data": False}
        async with secure_session(server, tmp_path, tls=chosen) as session:
            await session.get("a", tmp_path / "a")
        assert "PROT C" in server.heard
    assert (tmp_path / "a").read_bytes() == DATA
    assert server.resumed == []


async def test_trace(tmp_path: Path) -> None:
    lines: list[str] = []
    async with (
        tls_server() as server,
        secure_session(server, tmp_path, login=SECRET, trace=lines.append),
    ):
        pass
    assert "> AUTH TLS" in lines
    assert any(line.startswith("* TLSv1.") for line in lines)
    assert not [line for line in lines if SECRET["password"] in line]


# -- no TLS, or a wrong one ---------------------------------------------------------------------


async def test_a_server_without_tls_hears_no_password() -> None:
    async with scripted() as server:
        said = await refused(f"ftpes://{HOST}:{server.port}/")
        assert server.heard == ["AUTH TLS"]
    assert "offers no TLS" in said and "502" in said


async def test_implicit_tls_to_a_plain_server() -> None:
    async with scripted() as server:
        said = await refused(f"ftps://{HOST}:{server.port}/")
        assert not says_secret(server.heard)
    assert "no TLS" in said


@pytest.mark.parametrize(
    ("context", "fault"),
    [
        (lambda: server_context(is_old=True), "has expired"),
        (lambda: server_context("elsewhere.example"), "is for another host"),
        (lambda: server_context("127.0.0.2"), "is for another host"),
        (lambda: server_context(issuer=trustme.CA()), "is signed by an authority"),
        (self_signed_context, "is signed by itself"),
    ],
    ids=["expired", "wrong-name", "wrong-address", "unknown-authority", "self-signed"],
)
@pytest.mark.parametrize("is_implicit", [True, False], ids=["implicit", "explicit"])
async def test_a_wrong_certificate(
    tmp_path: Path, context: Callable[[], ssl.SSLContext], fault: str, is_implicit: bool
) -> None:
    scheme = "ftps" if is_implicit else "ftpes"
    async with tls_server(context=context(), is_implicit=is_implicit) as server:
        with pytest.raises(TlsError, match=fault):
            async with secure_session(server, tmp_path, scheme=scheme, retries=3, login=SECRET):
                pass
        assert server.heard == []
        assert server.sessions <= 1, "trying again does not make it right"


async def test_without_check_any_certificate_will_do() -> None:
    context = server_context("elsewhere.example", issuer=trustme.CA(), is_old=True)
    async with (
        tls_server(context=context) as server,
        secure_session(server, None, tls={"checks_certificate": False}) as session,
    ):
        assert session.is_logged_in


async def test_the_systems_authorities_are_those_trusted_otherwise() -> None:
    async with tls_server() as server:
        said = await refused(f"ftpes://{HOST}:{server.port}/")
    assert "authority that is not known here" in said


async def test_an_old_version_is_refused(tmp_path: Path) -> None:
    context = server_context()
    context.set_ciphers("DEFAULT@SECLEVEL=0")
    with pytest.warns(DeprecationWarning):
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    async with tls_server(context=context) as server:
        with pytest.raises(ConnectError, match="TLS"):
            async with secure_session(server, tmp_path, login=SECRET):
                pass
        assert server.heard == []


@pytest.mark.parametrize("content", [None, "no certificate"], ids=["missing", "no certificate"])
async def test_a_file_without_certificates(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_text(content)
    async with tls_server() as server:
        with pytest.raises(FileError, match=r"ca\.pem"):
            tls = TlsOptions(ca_file=path)
            await open_session(f"ftpes://{HOST}:{server.port}/", options=Options(tls=tls))


def test_authorities_are_loaded_once(tmp_path: Path) -> None:
    trustme.CA().cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    options = TlsOptions(ca_file=tmp_path / "ca.pem")
    first = client_context(options)
    assert client_context(options) is first
    assert client_context(TlsOptions(options.ca_file, checks_certificate=False)) is not first
    (tmp_path / "ca.pem").unlink()
    trustme.CA().cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    assert client_context(options) is not first, "the file has changed"


# -- attacks ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "injected",
    ["230 logged in", "230-half a reply", "23"],
    ids=["reply", "half a reply", "half a code"],
)
async def test_what_is_injected_behind_the_reply_to_auth(tmp_path: Path, injected: str) -> None:
    """A reply from before TLS must not answer a command from within it."""

    async def auth(talk: Conversation, _: str) -> None:
        talk.writer.write(f"234 go on\r\n{injected}".encode())

    async with tls_server({"AUTH": auth}) as server:
        with pytest.raises(TlsError, match="in the clear"):
            async with secure_session(server, tmp_path, login=SECRET):
                pass
        assert server.heard == ["AUTH TLS"]


async def test_what_is_injected_in_place_of_the_handshake(tmp_path: Path) -> None:
    async def auth(talk: Conversation, _: str) -> None:
        talk.say("234 go on")
        await talk.reader.read(100)  # the client has begun its handshake
        talk.say("230 logged in")

    async with tls_server({"AUTH": auth}) as server:
        with pytest.raises(TlsError, match="no TLS"):
            async with secure_session(server, tmp_path, login=SECRET):
                pass
        assert not says_secret(server.heard)


async def test_a_greeting_that_stalls(tmp_path: Path) -> None:
    async with tls_server(greeting=None) as server:
        with pytest.raises(ConnectError, match="did not answer"):
            async with secure_session(server, tmp_path, reply_timeout_s=0.2):
                pass


async def test_a_handshake_that_stalls(tmp_path: Path) -> None:
    async def auth(talk: Conversation, _: str) -> None:
        talk.say("234 go on")
        await talk.reader.read()

    async with tls_server({"AUTH": auth}) as server:
        with pytest.raises(ConnectError, match="took too long"):
            async with secure_session(server, tmp_path, connect_timeout_s=0.3):
                pass


async def test_a_handshake_that_is_cut(tmp_path: Path) -> None:
    async def auth(talk: Conversation, _: str) -> None:
        talk.say("234 go on")
        talk.hang_up()

    async with tls_server({"AUTH": auth}) as server:
        with pytest.raises(ConnectError, match="lost in the TLS handshake"):
            async with secure_session(server, tmp_path):
                pass


async def test_a_server_that_refuses_the_session(tmp_path: Path) -> None:
    async with tls_server(greeting="421 too many") as server:
        with pytest.raises(ConnectError, match="421 too many"):
            async with secure_session(server, tmp_path):
                pass


@pytest.mark.parametrize("greeting", ["220 ready", OURS], ids=["ordinary", "our kind"])
@pytest.mark.parametrize("defer", [True, False], ids=["deferred", "at once"])
@pytest.mark.parametrize("passive", [True, False], ids=["passive", "active"])
async def test_data_that_the_server_does_not_protect(
    tmp_path: Path, greeting: str, defer: bool, passive: bool
) -> None:
    """Nothing is asked for that would come in the clear."""
    script = {"PROT": "536 no", "FEAT": FEAT, "MULT": "200 8", "SIZE": "213 100", "MPSV": mpsv(1)}
    script |= {"OPTS": "200 MULT Connections=1;", "MPRT": "200 fine", "RETR": "550 asked too early"}
    async with tls_server(script, greeting=greeting) as server:
        with pytest.raises(TlsError, match="536 no"):
            async with secure_session(
                server, tmp_path, defer=defer, passive=passive, connections=4
            ) as session:
                await session.get("a", tmp_path / "a")
        assert "RETR" not in server.verbs()


@pytest.mark.parametrize("verb", ["REIN", "ccc", "PROT C", "PBSZ 1", "AUTH TLS"])
async def test_protection_is_not_given_up_by_hand(tmp_path: Path, verb: str) -> None:
    async with tls_server() as server, secure_session(server, tmp_path) as session:
        heard = list(server.heard)
        with pytest.raises(ArgumentError, match="without its protection"):
            await session.quote(verb)
        assert server.heard == heard


# -- flights and what is remembered -------------------------------------------------------------


def our_script() -> dict[str, Any]:
    return {
        "FEAT": FEAT,
        "MULT": "200 8 data connections available.",
        "OPTS": "200 MULT Connections=1;",
    }


async def test_auth_leaves_before_the_greeting_of_a_known_server(tmp_path: Path) -> None:
    async def late(talk: Conversation, _: str) -> None:
        talk.say(OURS)
        await upgrade(talk, "234 go on")

    memory = MemoryFile(tmp_path / "memory")
    async with tls_server({**our_script(), "AUTH": late}, greeting=None) as server:
        memory.note_server(f"tls:{HOST}", server.port, KnownServer(is_our_kind=True))
        async with secure_session(server, tmp_path, memory=memory) as session:
            assert session.greeting.startswith("XFTP")
        assert server.before_tls == ["AUTH TLS"]
        assert server.sessions == 1


async def test_a_known_server_that_has_become_another(tmp_path: Path) -> None:
    """It throws away what came before its greeting: the client waits for it the second time."""
    memory = MemoryFile(tmp_path / "memory")
    ignored = asyncio.Event()

    async def auth(talk: Conversation, _: str) -> None:
        if not ignored.is_set():
            ignored.set()
            return
        await upgrade(talk, "234 go on")

    async with tls_server({"AUTH": auth}) as server:
        memory.note_server(f"tls:{HOST}", server.port, KnownServer(is_our_kind=True))
        async with secure_session(
            server, tmp_path, memory=memory, pipelining_patience_s=0.3
        ) as session:
            assert session.is_logged_in
        assert server.sessions == 2
        known = memory.server(f"tls:{HOST}", server.port)
    assert known is not None and not known.pipelines


async def test_what_was_heard_in_the_clear_is_not_believed_later(tmp_path: Path) -> None:
    memory = MemoryFile(tmp_path / "memory")
    async with tls_server(our_script(), greeting=OURS) as server:
        options = Options(memory=memory, connections=1)
        session = await open_session(f"ftp://{HOST}:{server.port}/", options=options)
        await session.wait_closed()
        assert memory.server(HOST, server.port) is not None
        assert memory.server(f"tls:{HOST}", server.port) is None
        async with secure_session(server, tmp_path, memory=memory):
            pass
        known = memory.server(f"tls:{HOST}", server.port)
    assert known is not None and known.is_our_kind


async def test_our_kind_is_told_everything_in_one_flight(tmp_path: Path) -> None:
    """One flight behind the handshake: login, protection, and what the server can do."""
    async with tls_server(our_script(), greeting=OURS) as server:
        sent: list[str] = []
        async with secure_session(server, tmp_path, connections=4, trace=sent.append):
            pass
        assert server.heard[:6] == [
            "USER anonymous",
            "PASS anonymous@",
            "PBSZ 0",
            "PROT P",
            "FEAT",
            "OPTS UTF8 ON",
        ]
    leaving = [line.startswith(">") for line in sent]
    first = sent.index("> USER anonymous")
    assert all(leaving[first : first + 7]), "no reply was waited for in between"


async def test_a_wrong_password_within_tls(tmp_path: Path) -> None:
    async with tls_server({"PASS": "530 no"}) as server:
        with pytest.raises(LoginError):
            async with secure_session(server, tmp_path, login=SECRET):
                pass
