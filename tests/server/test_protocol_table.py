"""The table of docs/protocol.md, walked cell by cell against a running server."""

from __future__ import annotations

import asyncio
import contextlib
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support import RawClient, running_server
from xftp.server.commands import TABLE
from xftp.server.registry import Argument

from .support import Data, dial, extended_port

DOCUMENT = Path(__file__).parents[2] / "docs" / "protocol.md"
HEADINGS = [
    "command",
    "source",
    "not logged in",
    "no argument",
    "bad argument",
    "wrong order",
    "missing file",
    "directory, not file",
    "success",
]
NOTHING = "—"


@dataclass(frozen=True)
class Cell:
    """One cell: what is sent, and the codes that the last command gets."""

    verb: str
    situation: str
    codes: tuple[int, ...]
    commands: tuple[str, ...]

    @property
    def id(self) -> str:
        return f"{self.verb}-{self.situation.replace(' ', '_')}"


def _rows() -> list[dict[str, str]]:
    lines = DOCUMENT.read_text(encoding="utf-8").splitlines()
    start = lines.index(f"| {' | '.join(HEADINGS)} |")
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        cells = [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        rows.append(dict(zip(HEADINGS, cells, strict=True)))
    return rows


def _cells(row: dict[str, str]) -> list[Cell]:
    verb = row["command"]
    usual = re.findall("`(.+?)`", row["success"])[-1:]
    defaults = {"not logged in": usual, "no argument": [verb]}
    cells = []
    for situation in HEADINGS[2:]:
        if row[situation] == NOTHING:
            continue
        codes, _, _ = row[situation].partition("`")
        commands = re.findall("`(.+?)`", row[situation]) or defaults[situation]
        assert commands[-1].split()[0] == verb, f"{verb}, {situation}: another command"
        cells.append(Cell(verb, situation, tuple(map(int, codes.split())), tuple(commands)))
    return cells


ROWS = _rows()
CELLS = [cell for row in ROWS for cell in _cells(row)]


def test_every_command_has_a_row() -> None:
    assert sorted(row["command"] for row in ROWS) == sorted(TABLE)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["command"])
def test_every_row_is_filled(row: dict[str, str]) -> None:
    """Only what cannot happen may be left out."""
    command = TABLE[row["command"]]
    assert re.search(r"RFC \d+|Allman B\.|draft-", row["source"])
    if command.argument in (Argument.REQUIRED, Argument.OPTIONAL) and row["command"] != "EPSV":
        assert row["no argument"] != NOTHING
    if command.needs_login:
        assert row["not logged in"].startswith("530")
    if command.argument is Argument.REQUIRED:
        assert row["bad argument"] != NOTHING or row["command"] == "USER"
    if command.may_be_aborted and row["success"].startswith("150"):
        assert row["wrong order"].startswith("425")
    if "<path>" in command.syntax and "502" not in row["bad argument"]:
        assert row["missing file"] != NOTHING or row["command"] == "STOU"


async def _run(client: RawClient, command: str) -> tuple[int, ...]:
    """Send a command; make the data connection that it offers, and move what there is."""
    client.send(command)
    reply = await client.reply()
    codes = [reply.code]
    while codes[-1] < 200:
        codes.append((await client.reply()).code)
    if reply.code == 229 and command.startswith("EPSV"):
        data = await dial(extended_port(reply.text))
        data.writer.write(b"data")
        data.writer.write_eof()
        client.reading = asyncio.create_task(_drain(data))  # type: ignore[attr-defined]
    return tuple(codes)


async def _drain(data: Data) -> None:
    with contextlib.suppress(ConnectionError):
        await data.read()


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.id)
async def test_cell(root: Path, cell: Cell) -> None:
    (root / "file").write_bytes(b"0123456789")
    (root / "dir").mkdir()
    (root / "dir" / "inner").write_bytes(b"inner")
    (root / "empty").mkdir()
    async with running_server(root, wrong_login_s=0.0) as server:
        client = await RawClient.connect("127.0.0.1", server.server_port)
        try:
            if cell.situation != "not logged in":
                await client.log_in()
            for command in cell.commands[:-1]:
                await _run(client, command)
            assert await _run(client, cell.commands[-1]) == cell.codes
        finally:
            await client.close()
