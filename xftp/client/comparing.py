"""Comparing contents without moving them: hashes of files here and on the server."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from xftp.errors import VerifyError
from xftp.transport.files import SourceFile
from xftp.transport.hashing import digest_of

from .dialogue import Dialogue
from .hashes import CannotVerify, Method, RemoteFile, announced_method, choose_method
from .threads import in_thread


async def remote_digests(
    dialogue: Dialogue, files: Sequence[tuple[str, int]]
) -> tuple[Method, list[str | CannotVerify]]:
    """Ask for the hashes of files on the server, all at once where it takes that.

    files: paths and sizes in bytes. Gives what was computed how, or why a file has none. Raises
    VerifyError if the server tells no hashes, ConnectError.
    """
    method = choose_method(dialogue)
    if method is None:
        raise VerifyError("the server does not tell hashes, so contents cannot be compared")
    remotes = [RemoteFile(dialogue, path, method) for path, _ in files]
    for remote in remotes:
        remote.ask_early(None)
    digests: list[str | CannotVerify] = []
    for remote, (_, size) in zip(remotes, files, strict=True):
        try:
            digests.append(await remote.digest(size))
        except CannotVerify as error:
            digests.append(error)
    return method, digests


async def is_same_content(dialogue: Dialogue, source: SourceFile, remote: str) -> bool:
    """Tell whether a file on the server is one here; no, if the server does not tell its hash.

    Asked whether transfers are verified or not. Raises LocalFileError, ConnectError.
    """
    method = announced_method(dialogue)
    if method is None:
        return False
    try:
        theirs = await RemoteFile(dialogue, remote, method, may_grow=False).digest(source.size)
    except CannotVerify:
        return False
    descriptor, name, size = source.fileno(), source.name, source.size
    return theirs == await in_thread(lambda: digest_of(descriptor, name, method.algorithm, 0, size))


async def local_digest(path: Path, algorithm: str) -> tuple[str, int]:
    """Give the hash of a file here, and its size. Raises FileError."""

    def work() -> tuple[str, int]:
        source = SourceFile.open(str(path))
        try:
            size = source.size
            return digest_of(source.fileno(), str(path), algorithm, 0, size), size
        finally:
            source.close()

    return await in_thread(work)
