"""A server that is asked to stop: what belongs to a finished transfer is answered still."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.support import RawClient, raw_session, running_server

from .support import codes, plain


async def _upload_while_stopping(client: RawClient, stop: asyncio.Event) -> None:
    data = await plain(client)
    client.send("STOR file")
    assert await codes(client, 1) == [150]
    stop.set()
    await data.finish(b"abc")
    assert await codes(client, 1) == [226]


async def test_last_words(root: Path) -> None:
    async with running_server(root) as server, raw_session(server) as client:
        stop = asyncio.Event()

        async def shut_down() -> None:
            await stop.wait()
            await server.shut_down()

        ending = asyncio.create_task(shut_down())
        await _upload_while_stopping(client, stop)
        assert (await client.command("SIZE file")).code in (213, 550)
        assert (await client.command("HASH file")).code == 213
        assert (await client.command("RETR file")).code == 421
        with pytest.raises(ConnectionError):
            await client.reply()
        await ending


async def test_last_words_have_an_end(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xftp.server.ending.LAST_WORDS_S", 0.2)
    async with running_server(root) as server, raw_session(server) as client:
        stop = asyncio.Event()

        async def shut_down() -> None:
            await stop.wait()
            await server.shut_down()

        ending = asyncio.create_task(shut_down())
        await _upload_while_stopping(client, stop)
        assert (await client.reply()).code == 421
        await ending


async def test_an_account_that_is_gone_has_none(root: Path) -> None:
    async with running_server(root) as server, raw_session(server) as client:
        data = await plain(client)
        client.send("STOR file")
        assert await codes(client, 1) == [150]
        server.reload(())
        await data.finish(b"abc")
        assert await codes(client, 2) == [226, 421]


async def test_commands_sent_before_are_executed(root: Path) -> None:
    """As ever: what waits behind a transfer was asked in time."""
    async with running_server(root) as server, raw_session(server) as client:
        data = await plain(client)
        client.send("STOR file", "NOOP", "SYST")
        assert await codes(client, 1) == [150]
        ending = asyncio.create_task(server.shut_down())
        await data.finish(b"abc")
        assert await codes(client, 3) == [226, 200, 215]
        assert (await client.reply()).code == 421
        await ending
