"""Every command with every permission, against a running server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support import RawClient
from xftp.errors import ArgumentError
from xftp.protocol.hashes import X_COMMANDS
from xftp.server import Account, Server, Settings
from xftp.server.commands import TABLE
from xftp.server.permissions import (
    ALL,
    READ_ONLY,
    Permission,
    parse_permissions,
    permission_names,
)

from .support import dial, extended_port, outcome

LIST, READ, WRITE = Permission.LIST, Permission.READ, Permission.WRITE
APPEND, DELETE = Permission.APPEND, Permission.DELETE
RENAME, MKDIR = Permission.RENAME, Permission.MKDIR


@dataclass(frozen=True)
class Case:
    """A command, one of whose permissions is enough, and what it does then."""

    command: str
    enough: set[Permission]
    code: int
    moves_data: bool = False

    @property
    def verb(self) -> str:
        return self.command.split()[0]


ANY_FILE = {LIST, READ, WRITE, APPEND}
CASES = [
    Case("LIST", {LIST}, 226, True),
    Case("NLST dir", {LIST}, 226, True),
    Case("MLSD", {LIST}, 226, True),
    Case("MLST file", {LIST}, 250),
    Case("STAT file", {LIST}, 213),
    Case("SIZE file", ANY_FILE, 213),
    Case("MDTM file", ANY_FILE, 213),
    Case("RETR file", {READ}, 226, True),
    Case("MRTR", {READ}, 503, True),
    Case("MSTR", {WRITE}, 503, True),
    Case("HASH file", {READ}, 213),
    Case("HASB file", {READ}, 213),
    Case("HELD cut", {WRITE, APPEND}, 213),
    *(Case(f"{verb} file", {READ}, 250) for verb in X_COMMANDS),
    Case("STOR file", {WRITE}, 226, True),
    Case("STOR new", {WRITE}, 226, True),
    Case("STOU", {WRITE}, 226, True),
    Case("APPE file", {APPEND}, 226, True),
    Case("MFMT 20200101000000 file", {WRITE, APPEND}, 213),
    Case("SITE CHMOD 600 file", {WRITE}, 200),
    Case("DELE file", {DELETE}, 250),
    Case("RMD dir", {DELETE}, 250),
    Case("XRMD dir", {DELETE}, 250),
    Case("RNFR file", {RENAME}, 350),
    Case("MKD made", {MKDIR}, 257),
    Case("XMKD made", {MKDIR}, 257),
    *(Case(command, set(ALL), code) for command, code in
      (("CWD dir", 250), ("PWD", 257), ("STAT", 211), ("SITE HELP", 214), ("CDUP", 200),
       ("NOOP", 200), ("REST 5", 350), ("RANG 0 4", 350), ("MULT", 200))),
]  # fmt: skip


def account(name: str, root: Path, *granted: Permission) -> Account:
    return Account(name, root, granted=frozenset(granted))


@pytest.fixture
async def server(root: Path) -> AsyncIterator[Server]:
    """One user for each permission, called like it, and some with several."""
    (root / "file").write_bytes(b"0123456789")
    (root / "cut.xftp.part").write_bytes(b"01234")
    (root / "dir").mkdir()
    users = [account(each.value, root, each) for each in Permission]
    users += [
        account("nothing", root),
        account("mover", root, RENAME, DELETE),
        account("reader", root, *READ_ONLY),
    ]
    server = Server(Settings(tuple(users)))
    await server.start("127.0.0.1", 0)
    yield server
    await server.close()


async def session(server: Server, name: str) -> RawClient:
    client = await RawClient.connect("127.0.0.1", server.server_port)
    await client.log_in(name, "x")
    assert (await client.command("TYPE I")).code == 200
    return client


async def result(client: RawClient, case: Case) -> int:
    """Give the last code of a command, over a data connection if it takes one."""
    if not case.moves_data:
        return (await client.command(case.command)).code
    data = await dial(extended_port((await client.command("EPSV")).text))
    client.send(case.command)
    await data.send(b"data")
    data.writer.write_eof()
    codes = await outcome(client)
    await data.close()
    return codes[-1]


def tree(root: Path) -> list[tuple[str, bytes, int, float]]:
    return sorted(
        (path.name, path.read_bytes() if path.is_file() else b"", status.st_mode, status.st_mtime)
        for path in root.iterdir()
        if (status := path.stat())
    )


@pytest.mark.parametrize("permission", Permission, ids=lambda each: each.value)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.command.replace(" ", "_"))
async def test_cell(server: Server, root: Path, case: Case, permission: Permission) -> None:
    before = tree(root)
    client = await session(server, permission.value)
    code = await result(client, case)
    if permission in case.enough:
        assert code == case.code
    else:
        assert code == 550
        assert tree(root) == before
        assert (await client.command("NOOP")).code == 200
    await client.close()


def test_the_table_has_every_command_with_permissions() -> None:
    asked = {case.verb for case in CASES if case.enough != ALL} - {"SITE", "STAT"}
    assert asked | {"RNTO"} == {verb for verb, row in TABLE.items() if row.permissions}


async def test_nothing_is_permitted_to_one_with_nothing(server: Server) -> None:
    client = await session(server, "nothing")
    for case in CASES:
        expected = case.code if case.enough == ALL else 550
        assert await result(client, case) == expected, case.command
    await client.close()


async def test_renaming_over_a_file_is_deleting_it(server: Server, root: Path) -> None:
    (root / "other").write_bytes(b"other")
    client = await session(server, "rename")
    assert (await client.command("RNFR file")).code == 350
    assert (await client.command("RNTO other")).code == 550
    assert (root / "other").read_bytes() == b"other"
    assert (await client.command("RNFR file")).code == 350
    assert (await client.command("RNTO moved")).code == 250
    await client.close()
    client = await session(server, "mover")
    assert (await client.command("RNFR moved")).code == 350
    assert (await client.command("RNTO other")).code == 250
    assert (root / "other").read_bytes() == b"0123456789"
    await client.close()


async def test_a_refused_transfer_leaves_no_port_open(server: Server) -> None:
    client = await session(server, "list")
    port = extended_port((await client.command("EPSV")).text)
    assert (await client.command("RETR file")).code == 550
    with pytest.raises(ConnectionRefusedError):
        await dial(port)
    await client.close()


@pytest.mark.parametrize(
    ("name", "of_file", "of_directory"),
    [("list", "", "el"), ("reader", "r", "el"), ("mover", "df", "efdp")],
)
async def test_mlst_tells_the_permissions(
    server: Server, name: str, of_file: str, of_directory: str
) -> None:
    client = await session(server, name)
    if name == "mover":  # who may not list is not told either
        assert (await client.command("MLST file")).code == 550
    else:
        for path, signs in (("file", of_file), ("dir", of_directory)):
            facts = (await client.command(f"MLST {path}")).lines[1]
            perm = next(f for f in facts.split(";") if f.strip().startswith("perm="))
            assert perm.strip() == f"perm={signs}"
    await client.close()


def test_names() -> None:
    assert parse_permissions(permission_names(ALL)) == ALL
    assert permission_names(READ_ONLY) == ["list", "read"]
    with pytest.raises(ArgumentError, match="'fly' is no permission, there are list, read"):
        parse_permissions(["read", "fly"])
