"""A server with an empty root, and a session with it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.support import RawClient, raw_session
from xftp.server import Server

from .support import opened


@pytest.fixture(autouse=True)
async def closed_data_connections() -> AsyncIterator[None]:
    yield
    while opened:
        await opened.pop().close()


@pytest.fixture
async def client(server: Server) -> AsyncIterator[RawClient]:
    """A session that is logged in, with TYPE I."""
    async with raw_session(server) as session:
        assert (await session.command("TYPE I")).code == 200
        yield session
