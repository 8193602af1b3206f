"""What a session asks of the server besides transfers: directories, names, and the rest."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from xftp.errors import ArgumentError, PeerError, ReplyError
from xftp.protocol.commands import Command, format_command
from xftp.protocol.listings import Entry
from xftp.protocol.replies import Reply

from .comparing import remote_digests
from .dialogue import Dialogue, reply_error
from .facts import parse_modified, parse_size
from .hashes import CannotVerify, Method
from .listing import fetch_text, list_entries
from .text import printable

_STATUS_CODES = (211, 212, 213)
"""Replies to STAT, by which it is known while a transfer runs (RFC 959 section 4.2)."""

_END_PROTECTION = frozenset({"CCC", "PBSZ", "PROT", "REIN"})
"""What changes how the session is protected, which both ends have to know (RFC 4217)."""

_QUOTED = re.compile(r'"((?:[^"]|"")*)"')
"""A path in a 257 reply: quotation marks inside are doubled (RFC 959 appendix II)."""


class ServerCommands:
    """The commands that move no file. Errors as those of `Session`."""

    def __init__(self, dialogue: Dialogue) -> None:
        self._dialogue = dialogue
        self._walk: list[tuple[str, str]] = []
        """The way to the working directory, to go it again on a new connection."""

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[Dialogue]:
        """Have the dialogue for oneself."""
        async with self._dialogue.lock:
            yield self._dialogue

    # -- files and directories ---------------------------------------------------------------------

    async def list(self, path: str = "") -> list[Entry]:
        """List a directory, without "." and ".."; names are as the server gave them."""
        async with self._turn() as dialogue:
            return await list_entries(dialogue, path)

    async def list_text(self, path: str = "") -> str:
        """List a directory for people: what LIST sends, with line feeds, not fit for a terminal
        before what steers it is taken out."""
        async with self._turn() as dialogue:
            listing = await fetch_text(dialogue, path)
        return listing.decode("utf-8", "surrogateescape").replace("\r\n", "\n")

    async def size(self, path: str) -> int:
        """Give the size of a remote file in bytes."""
        async with self._turn() as dialogue:
            await dialogue.ensure_type("I")
            reply = await dialogue.demand("SIZE", path)
        size = parse_size(reply)
        if size is None:
            raise PeerError("the reply to SIZE holds no size")
        return size

    async def modified(self, path: str) -> float:
        """Give the modification time of a remote file, Unix seconds."""
        modified = parse_modified(await self._command("MDTM", path))
        if modified is None:
            raise PeerError("the reply to MDTM holds no time")
        return modified

    async def digests(
        self, files: Sequence[tuple[str, int]]
    ) -> tuple[Method, Sequence[str | CannotVerify]]:
        """Ask for the hashes of remote files, given as paths and sizes in bytes.

        Raises VerifyError if the server tells none.
        """
        async with self._turn() as dialogue:
            return await remote_digests(dialogue, files)

    async def cwd(self, path: str) -> None:
        """Change the working directory."""
        await self._command("CWD", path)
        if path.startswith("/"):
            self._walk.clear()
        self._walk.append(("CWD", path))

    async def cdup(self) -> None:
        """Change to the parent of the working directory."""
        await self._command("CDUP")
        self._walk.append(("CDUP", ""))

    async def pwd(self) -> str:
        """Give the working directory."""
        reply = await self._command("PWD")
        found = _QUOTED.search(reply.text)
        if found is None:
            raise PeerError("the reply to PWD holds no path")
        return found[1].replace('""', '"')

    async def make_directory(self, path: str) -> None:
        """Make a directory."""
        await self._command("MKD", path)

    async def remove_directory(self, path: str) -> None:
        """Remove an empty directory."""
        await self._command("RMD", path)

    async def remove(self, path: str) -> None:
        """Remove a file."""
        await self._command("DELE", path)

    async def remove_all(
        self, paths: Sequence[str], *, directories: bool = False
    ) -> Sequence[ReplyError | None]:
        """Remove files, or empty directories, in the order given and in one flight where it can be.

        Gives why each was not removed; None for what is gone.
        """
        return await self._each("RMD" if directories else "DELE", paths)

    async def make_directories(self, paths: Sequence[str]) -> Sequence[ReplyError | None]:
        """Make directories, as `remove_all` removes them: what others are in has to come first."""
        return await self._each("MKD", paths)

    async def _each(self, verb: str, paths: Sequence[str]) -> Sequence[ReplyError | None]:
        for path in paths:
            check_path(path)
        async with self._turn() as dialogue:
            replies = await dialogue.flight(*(Command(verb, path) for path in paths))
        return [None if each.is_positive else reply_error(each, verb) for each in replies]

    async def rename(self, old: str, new: str) -> None:
        """Rename a file or directory."""
        check_path(old)
        check_path(new)
        async with self._turn() as dialogue:
            reply = await dialogue.ask("RNFR", old)
            if not reply.is_intermediate:
                raise reply_error(reply, "RNFR")
            await dialogue.demand("RNTO", new)

    # -- the rest ----------------------------------------------------------------------------------

    async def quote(self, command: str) -> Reply:
        """Send a command as it is and give the reply, whatever it is."""
        verb, _, argument = command.partition(" ")
        verb = verb.upper()
        async with self._turn() as dialogue:
            is_secure = dialogue.control.tls is not None
            if verb == "AUTH" or (is_secure and verb in _END_PROTECTION):
                raise ArgumentError(f"{verb} would leave the session without its protection")
            reply = await dialogue.ask(verb, argument)
            dialogue.forget_type()
        return reply

    async def status(self, path: str = "") -> str:
        """Ask for the server's status; while a transfer runs, for that of the transfer."""
        reply = await self._dialogue.ask("STAT", path, codes=_STATUS_CODES)
        if not reply.is_positive:
            raise reply_error(reply, "STAT")
        return printable(reply.text)

    async def system(self) -> str:
        """Ask what system the server runs on."""
        return printable((await self._command("SYST")).text)

    async def help(self, topic: str = "") -> str:
        """Ask the server for help."""
        return printable((await self._command("HELP", topic)).text)

    async def noop(self) -> None:
        """Ask for nothing, to see that the server is there."""
        await self._command("NOOP")

    async def _command(self, verb: str, argument: str = "") -> Reply:
        async with self._turn() as dialogue:
            return await dialogue.demand(verb, argument)


def check_path(path: str) -> None:
    """Raise ArgumentError for a path that cannot be sent."""
    if not path:
        raise ArgumentError("a path is missing")
    format_command("RETR", path, doubles=True)
