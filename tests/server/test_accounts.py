"""Accounts at work: guesses, limits of a user, and accounts that change meanwhile."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tests.support import RawClient
from xftp.server import Account, Server, Settings
from xftp.server.accounts import Accounts, User
from xftp.server.guessing import FairQueue
from xftp.server.passwords import hash_password, is_hash, is_right
from xftp.server.permissions import ALL

from .support import codes, download, has_moved, multiple, multiple_ports, plain, until, upload

ROUNDS = 5
"""How often times are compared before they count as different."""


def ann(root: Path, **settings: object) -> Account:
    return replace(
        Account("ann", root, password_hash=hash_password("secret"), granted=ALL), **settings
    )  # type: ignore[arg-type]


@asynccontextmanager
async def running(*accounts: Account, **settings: object) -> AsyncIterator[Server]:
    server = Server(replace(Settings(accounts), **settings))  # type: ignore[arg-type]
    await server.start("127.0.0.1", 0)
    try:
        yield server
    finally:
        await server.close()


async def connect(server: Server) -> RawClient:
    return await RawClient.connect("127.0.0.1", server.server_port)


async def session(server: Server) -> RawClient:
    client = await connect(server)
    await client.log_in("ann", "secret")
    assert (await client.command("TYPE I")).code == 200
    return client


# -- passwords ---------------------------------------------------------------------------------


@pytest.mark.parametrize("password", ["secret", "pässword", "x" * 8000, "\udcff"])
def test_hashes(password: str) -> None:
    password_hash = hash_password(password)
    assert password not in password_hash
    assert is_hash(password_hash) and password_hash != hash_password(password)
    assert is_right(password_hash, password)
    assert not is_right(password_hash, password + "x")
    assert not is_right("$argon2id$nonsense", password)
    assert not is_hash("secret")


async def test_a_wrong_password_takes_its_time_and_tells_nothing(root: Path) -> None:
    """Existing or not: the same reply, at least 3 s later, within 50 ms of each other."""
    async with running(ann(root)) as server:

        async def guess(name: str) -> tuple[float, str]:
            client = await connect(server)
            await client.command(f"USER {name}")
            began_s = time.monotonic()
            reply = await client.command("PASS wrong")
            took_s = time.monotonic() - began_s
            assert reply.code == 530
            await client.close()
            return took_s, reply.text

        # Several at once, and the quickest of each kind: a busy machine delays any of them, but
        # not every time.
        found: list[tuple[float, str]] = []
        for _ in range(ROUNDS):
            found += await asyncio.gather(*(guess(name) for name in ["ann", "nobody"] * 4))
            quickest_known, quickest_unknown = min(found[0::2])[0], min(found[1::2])[0]
            if abs(quickest_known - quickest_unknown) < 0.05:
                break
        else:
            pytest.fail(f"{quickest_known:.3f} s for a known name, {quickest_unknown:.3f} s else")
    assert len({text for _, text in found}) == 1
    assert min(took_s for took_s, _ in found) >= 2.99


async def test_guesses_of_many_sessions_keep_nobody_out(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One address guesses in 40 sessions; who comes from another, 127.0.0.2, is next but one."""
    asked, compared, may_go_on = [], [], threading.Event()
    check = Accounts.check

    async def noted(self: Accounts, login: str, password: str, host: str) -> User | None:
        asked.append(password)
        return await check(self, login, password, host)

    def held_up(password_hash: str, password: str) -> bool:
        compared.append(password)
        assert may_go_on.wait(20)
        return is_right(password_hash, password)

    monkeypatch.setattr(Accounts, "check", noted)
    monkeypatch.setattr("xftp.server.accounts.is_right", held_up)
    async with running(ann(root), wrong_login_s=0.0) as server:
        guessers = [await connect(server) for _ in range(40)]
        for each in guessers:
            each.send("USER ann", "PASS 1", "USER ann", "PASS 2", "USER ann", "PASS 3")
        await until(lambda: len(asked) == len(guessers))
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", server.server_port, local_addr=("127.0.0.2", 0)
        )
        client = RawClient(reader, writer)
        assert (await client.reply()).code == 220
        client.send("USER ann", "PASS secret")
        await until(lambda: "secret" in asked)
        may_go_on.set()
        assert await codes(client, 2) == [331, 230]
        assert compared.index("secret") <= 2  # behind the one that runs, and the next
        for each in (client, *guessers):
            await each.close()


async def test_more_guesses_than_wait_get_421(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "xftp.server.accounts.FairQueue",
        partial(FairQueue, per_second=1, waiting_per_address=2),
    )
    async with running(ann(root), wrong_login_s=0.0) as server:
        clients = [await connect(server) for _ in range(4)]
        for each in clients:
            assert (await each.command("USER ann")).code == 331
        for each in clients:  # one is compared, two wait, and there is no room for another
            each.send("PASS secret")
        said = [reply.code for reply in await asyncio.gather(*(each.reply() for each in clients))]
        assert sorted(said) == [230, 230, 230, 421]
        with pytest.raises(ConnectionError):
            await clients[said.index(421)].reply()
        for each in clients:
            await each.close()


async def test_a_guesser_who_leaves_is_not_waited_for(root: Path) -> None:
    async with running(ann(root), wrong_login_s=60.0) as server:
        client = await connect(server)
        client.send("USER ann", "PASS wrong")
        assert (await client.reply()).code == 331
        await until(lambda: server.shared.watch.logins[False] == 1)
        await client.close()
        await until(lambda: not server.session_count)


# -- limits of a user --------------------------------------------------------------------------


async def test_sessions_of_one_user(root: Path) -> None:
    async with running(ann(root, session_limit=2)) as server:
        first, second, third = await session(server), await session(server), await connect(server)
        third.send("USER ann", "PASS secret")
        assert await codes(third, 2) == [331, 421]
        with pytest.raises(ConnectionError):
            await third.reply()
        assert (await first.command("REIN")).code == 220  # gives its place to another
        fourth = await session(server)
        for each in (first, second, third, fourth):
            await each.close()


async def test_data_connections_of_one_user(root: Path) -> None:
    async with running(ann(root, connection_limit=3)) as server:
        stranger = await connect(server)
        assert "8 data" in (await stranger.command("MULT")).text
        await stranger.close()
        client = await session(server)
        assert "3 data" in (await client.command("MULT")).text
        assert "Connections=3;" in (await client.command("OPTS MULT Connections=8;")).text
        _, ports = multiple_ports((await client.command("MPSV")).text)
        assert len(ports) == 3
        reply = await client.command("MPRT IP4|TCP|127.0.0.1|2001,2002,2003,2004,2005")
        assert "3 data" in reply.text
        await client.close()


async def test_the_rate_is_that_of_all_transfers_together(root: Path) -> None:
    rate_bytes_per_s = 1_000_000
    (root / "file").write_bytes(bytes(300_000))
    async with running(ann(root, rate_bytes_per_s=rate_bytes_per_s)) as server:
        down, up, records = [await session(server) for _ in range(3)]
        connections = await multiple(records, 2)
        began_s = time.monotonic()
        records.send("RETR file")
        await asyncio.gather(
            *(each.read() for each in connections),
            download(down, "RETR file"),
            upload(up, "STOR new", bytes(300_000)),
        )
        # 900 kB, of which a burst of 100 ms is free.
        assert time.monotonic() - began_s > 0.75
        for each in (down, up, records):
            await each.close()


async def test_the_patience_with_one_user(root: Path) -> None:
    bob = replace(ann(root, idle_timeout_s=0.2), name="bob")
    async with running(ann(root, stall_timeout_s=0.2), bob) as server:
        idle = await connect(server)
        await idle.log_in("bob", "secret")
        assert (await idle.reply()).code == 421
        await idle.close()
        stalled = await session(server)  # no 421 here, however long bob was waited for
        await plain(stalled)
        stalled.send("STOR file")
        assert await codes(stalled, 2) == [150, 426]
        await stalled.close()


# -- accounts that change ----------------------------------------------------------------------


async def test_new_rights_count_at_once(root: Path) -> None:
    async with running(ann(root)) as server:
        client = await session(server)
        assert (await client.command("MKD one")).code == 257
        server.reload([replace(server.settings.accounts[0], granted=frozenset())])
        assert (await client.command("MKD two")).code == 550
        server.reload(server.settings.accounts)
        assert (await client.command("MKD two")).code == 257
        await client.close()


@pytest.mark.parametrize("change", ["removed", "password", "home"])
async def test_a_session_whose_login_is_no_longer_right_ends(
    root: Path, tmp_path: Path, change: str
) -> None:
    account = ann(root)
    async with running(account, ann(root, name="bob")) as server:
        client, bob = await session(server), await connect(server)
        await bob.log_in("bob", "secret")
        others = [ann(root, name="bob", password_hash=server.settings.accounts[1].password_hash)]
        if change == "password":
            others.append(ann(root, password_hash=hash_password("new")))
        elif change == "home":
            others.append(replace(account, root=tmp_path))
        server.reload(others)
        reply = await client.reply()
        assert reply.code == 421 and "account" in reply.text
        assert (await bob.command("PWD")).code == 257
        await client.close()
        await bob.close()


async def test_a_running_transfer_is_finished_first(root: Path) -> None:
    content = os.urandom(8_000_000)
    (root / "file").write_bytes(content)
    async with running(ann(root)) as server:
        client = await session(server)
        data = await plain(client)
        client.send("RETR file")
        assert (await client.reply()).code == 150
        await has_moved(client, 1)
        server.reload([])
        assert await data.read() == content
        assert await codes(client, 2) == [226, 421]
        await client.close()


async def test_a_login_under_way_counts_by_the_new_accounts(root: Path) -> None:
    async with running(ann(root), wrong_login_s=0.0) as server:
        client = await connect(server)
        assert (await client.command("USER ann")).code == 331
        server.reload([ann(root, password_hash=hash_password("new"))])
        assert (await client.command("PASS secret")).code == 530
        await client.log_in("ann", "new")
        await client.close()
