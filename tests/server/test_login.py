"""USER, PASS, REIN: who gets in, and what becomes of those who do not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support import RawClient
from xftp.server import Account, Server, Settings

from .support import codes, upload


@pytest.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[Server]:
    """Two users with passwords and roots of their own, of whom one may write."""
    for name in ("ann", "bob"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"of-{name}").write_bytes(b"abc")
    accounts = (
        Account("ann", tmp_path / "ann", "pässword", writable=True),
        Account("bob", tmp_path / "bob", "other"),
        Account("lost", tmp_path / "nowhere", "lost"),
    )
    server = Server(replace(Settings(accounts), login_tries=3, wrong_login_s=0.02))
    await server.start("127.0.0.1", 0)
    yield server
    await server.close()


@pytest.fixture
async def stranger(guarded: Server) -> AsyncIterator[RawClient]:
    client = await RawClient.connect("127.0.0.1", guarded.server_port)
    yield client
    await client.close()


async def test_right_password(stranger: RawClient) -> None:
    await stranger.log_in("ann", "pässword")
    assert (await stranger.command("SIZE of-ann")).code == 550  # TYPE A
    assert (await stranger.command("MLST of-ann")).code == 250
    assert (await stranger.command("MLST of-bob")).code == 550


@pytest.mark.parametrize(
    ("user", "password"),
    [
        ("ann", "PÄSSWORD"),
        ("ann", ""),
        ("ann", "other"),
        ("ANN", "pässword"),
        ("nobody", "pässword"),
        ("nobody", ""),
        ("anonymous", "me@here"),
        ("lost", "lost"),
    ],
)
async def test_wrong_login(stranger: RawClient, user: str, password: str) -> None:
    assert (await stranger.command(f"USER {user}")).code == 331
    assert (await stranger.command(f"PASS {password}".rstrip())).code == 530
    for command in ("PWD", "RETR of-ann", "PASV", "DELE of-ann"):
        assert (await stranger.command(command)).code == 530
    assert (await stranger.command("PASS pässword")).code == 503  # USER comes first again
    await stranger.log_in("ann", "pässword")


async def test_unknown_name_is_not_told(stranger: RawClient) -> None:
    known = [(await stranger.command(line)).text for line in ("USER ann", "PASS wrong")]
    unknown = [(await stranger.command(line)).text for line in ("USER nobody", "PASS wrong")]
    assert known == unknown


async def test_third_try_ends_the_session(stranger: RawClient) -> None:
    stranger.send(
        "USER ann", "PASS 1", "USER nobody", "PASS 2", "REIN", "USER ann", "PASS 3", "NOOP"
    )
    assert await codes(stranger, 7) == [331, 530, 331, 530, 220, 331, 421]
    with pytest.raises(ConnectionError):
        await stranger.reply()


async def test_a_login_does_not_forgive_earlier_tries(stranger: RawClient) -> None:
    for password, code in (("1", 530), ("pässword", 230), ("2", 530), ("3", 421)):
        assert (await stranger.command("USER ann")).code == 331
        assert (await stranger.command(f"PASS {password}")).code == code


async def test_user_again_leaves_the_account(stranger: RawClient) -> None:
    await stranger.log_in("ann", "pässword")
    assert (await stranger.command("USER bob")).code == 331
    assert (await stranger.command("MLST of-ann")).code == 530
    assert (await stranger.command("PASS other")).code == 230
    assert (await stranger.command("MLST of-bob")).code == 250
    assert (await stranger.command("MLST of-ann")).code == 550


async def test_rein_forgets_everything(stranger: RawClient) -> None:
    await stranger.log_in("ann", "pässword")
    stranger.send("TYPE I", "MKD d", "CWD d", "RNFR ../of-ann", "REST 2", "EPSV", "REIN", "PWD")
    assert await codes(stranger, 8) == [200, 257, 250, 350, 350, 229, 220, 530]
    await stranger.log_in("ann", "pässword")
    assert '"/"' in (await stranger.command("PWD")).text
    assert "ASCII" in (await stranger.command("STAT")).text
    assert (await stranger.command("RNTO x")).code == 503
    assert (await stranger.command("RETR of-ann")).code == 425


async def test_pass_twice(stranger: RawClient) -> None:
    assert (await stranger.command("PASS x")).code == 503
    await stranger.log_in("ann", "pässword")
    assert (await stranger.command("PASS pässword")).code == 503
    assert (await stranger.command("PWD")).code == 257


@pytest.mark.parametrize("name", ["anonymous", "ftp", "Anonymous", "FTP"])
@pytest.mark.parametrize("password", ["PASS", "PASS me@here"])
async def test_anonymous(server: Server, name: str, password: str) -> None:
    client = await RawClient.connect("127.0.0.1", server.server_port)
    client.send(f"USER {name}", password, "PWD")
    assert await codes(client, 3) == [331, 230, 257]
    await client.close()


@pytest.mark.parametrize(
    "command",
    ["MKD new", "RMD d", "DELE of-bob", "RNFR of-bob", "MFMT 20200101000000 of-bob",
     "SITE CHMOD 644 of-bob"],
)  # fmt: skip
async def test_reader_changes_nothing(stranger: RawClient, tmp_path: Path, command: str) -> None:
    await stranger.log_in("bob", "other")
    assert (await stranger.command(command)).code == 550
    for upload_command in ("STOR new", "STOR of-bob", "APPE of-bob", "STOU"):
        assert await upload(stranger, upload_command, b"x") == [550]
    assert [path.name for path in (tmp_path / "bob").iterdir()] == ["of-bob"]
    assert (tmp_path / "bob" / "of-bob").read_bytes() == b"abc"
