"""Accounts whose password PAM compares: with a stand-in, and with the real library.

The real library runs with Debian's libpam-wrapper, which takes the rules from a directory of the
test's own: nothing of the machine's configuration is read or changed.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.support import RawClient
from xftp.server import Account, Server, Settings
from xftp.server import accounts as accounts_module
from xftp.server.passwords import hash_password

from .daemon import ROOT
from .support import HOST, codes, until


def asking(root: Path, name: str = "ann") -> Account:
    return Account(name, root, asks_pam=True)


@asynccontextmanager
async def running(*accounts: Account) -> AsyncIterator[Server]:
    server = Server(Settings(accounts, wrong_login_s=0.0, pam_service="ftp-test"))
    await server.start(HOST, 0)
    try:
        yield server
    finally:
        await server.close()


async def log_in(server: Server, name: str, password: str, source: str = HOST) -> int:
    reader, writer = await asyncio.open_connection(HOST, server.server_port, local_addr=(source, 0))
    client = RawClient(reader, writer)
    try:
        client.send(f"USER {name}", f"PASS {password}")
        return (await codes(client, 3))[-1]
    finally:
        await client.close()


async def test_pam_decides_and_nothing_else(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, str, str]] = []

    def is_accepted(service: str, name: str, password: str) -> bool:
        asked.append((service, name, password))
        return password == "right"

    monkeypatch.setattr(accounts_module, "is_accepted", is_accepted)
    bob = Account("bob", root, password_hash=hash_password("own"))
    async with running(asking(root), bob) as server:
        assert await log_in(server, "ann", "right") == 230
        assert await log_in(server, "ann", "wrong") == 530
        assert await log_in(server, "ann", "") == 530
        assert await log_in(server, "nobody", "right") == 530
        assert await log_in(server, "bob", "right") == 530
        assert await log_in(server, "bob", "own") == 230
    assert asked == [("ftp-test", "ann", word) for word in ("right", "wrong", "")]


async def test_a_stack_that_waits_keeps_no_other_address_out(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wrong passwords take PAM seconds; meanwhile others, by PAM or not, get in."""
    held, may_go_on = [], threading.Event()

    def is_accepted(service: str, name: str, password: str) -> bool:
        if password != "right":
            held.append(password)
            assert may_go_on.wait(20)
        return password == "right"

    monkeypatch.setattr(accounts_module, "is_accepted", is_accepted)
    bob = Account("bob", root, password_hash=hash_password("own"))
    async with running(asking(root), bob) as server:
        guesses = [asyncio.create_task(log_in(server, "ann", "wrong")) for _ in range(10)]
        await until(lambda: bool(held))
        assert await log_in(server, "ann", "right", "127.0.0.2") == 230
        assert await log_in(server, "bob", "own") == 230
        assert len(held) == 1  # one at a time for one address
        may_go_on.set()
        assert await asyncio.gather(*guesses) == [530] * 10


# -- the real library ----------------------------------------------------------------------------

WRAPPERS = [str(path) for path in Path("/usr/lib").glob("*/libpam_wrapper.so")]
MODULES = [str(path) for path in Path("/usr/lib").glob("*/pam_wrapper/pam_matrix.so")]

# python-pam asks for the library by name, so that preloading the wrapper would not be enough.
ASK = f"""
import ctypes.util, sys
find = ctypes.util.find_library
ctypes.util.find_library = lambda name: {WRAPPERS[:1]}[0] if name == "pam" else find(name)
from xftp.server.pam import is_accepted
for line in sys.stdin:
    name, _, password = line.rstrip("\\n").partition(":")
    print(is_accepted("ftp-test", name, password))
"""


@pytest.mark.skipif(not (MODULES and WRAPPERS), reason="needs Debian's libpam-wrapper")
def test_the_real_library(tmp_path: Path) -> None:
    rules, words = tmp_path / "rules", tmp_path / "words"
    rules.mkdir()
    words.write_text("ann:right:ftp-test\nbob:other:ftp-test\ncid:right:login\n")
    (rules / "ftp-test").write_text(
        f"auth required {MODULES[0]} passdb={words} verbose\n"
        f"account required {MODULES[0]} passdb={words} verbose\n"
    )
    guesses = ["ann:right", "ann:wrong", "ann:", "bob:right", "bob:other", "cid:right", "eve:right"]
    environment = os.environ | {
        "LD_PRELOAD": WRAPPERS[0],
        "PAM_WRAPPER": "1",
        "PAM_WRAPPER_SERVICE_DIR": str(rules),
        "PYTHONPATH": str(ROOT),
    }
    done = subprocess.run(
        [sys.executable, "-c", ASK],
        input="\n".join(guesses),
        capture_output=True,
        text=True,
        env=environment,
        timeout=60,
        check=True,
    )
    assert done.stdout.split() == ["True", *["False"] * 3, "True", "False", "False"]
