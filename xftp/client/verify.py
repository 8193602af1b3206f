"""Is the file here the one on the server? Found out by hashes, of the whole and then of parts.

TCP's checksum misses one damaged segment in ten thousands or so, and routers, adapters and memory
damage some (Stone and Partridge, When the CRC and TCP Checksum Disagree, SIGCOMM 2000). So the
hash of the whole file is compared, which costs a few bytes and, behind a slow link, no time. Only
when it differs are parts compared, to fetch or send nothing again but those that are wrong.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence

from xftp.errors import LocalFileError, VerifyError, XftpError
from xftp.protocol.hashes import ByteRange
from xftp.transport.hashing import FileHash, Follower, digest_of, new_hash

from .dialogue import Dialogue
from .hashes import CannotVerify, RemoteFile, choose_method
from .threads import in_thread

SMALLEST_PART_BYTES = 256 * 1024
"""Parts are not looked into further: to move this much again is cheap, to ask more is not."""

FAN_OUT = 32
"""Into how many parts one that differs is divided."""

MOST_QUESTIONS = 512
"""Hashes that are asked for in one search; then what differs is taken as it is known by then."""

MOST_RANGES = 16
"""Ranges that are moved again one by one; more are taken together."""

ROUNDS = 3
"""How often a file is mended before it is given up."""


class DiffersError(VerifyError):
    """The file differs, and the server can only move all of it again."""


Mend = Callable[[ByteRange], Awaitable[None]]
"""Moves one range again."""


class Verification:
    """The comparison of one file here with one on the server."""

    def __init__(
        self,
        dialogue: Dialogue,
        remote: RemoteFile,
        descriptor: int,
        name: str,
        frontier: Callable[[], int],
        *,
        moves_parts: bool,
        version: Callable[[], Hashable],
        left: str,
    ) -> None:
        self._dialogue = dialogue
        self._remote = remote
        self._descriptor = descriptor
        self._name = name
        self._moves_parts = moves_parts and remote.method.has_ranges
        self._version = version
        self._version_followed = version()
        self._left = left
        content = FileHash(descriptor, name, remote.method.algorithm)
        self._follower: Follower | None = Follower(content, frontier)

    @classmethod
    def begin(
        cls,
        dialogue: Dialogue,
        path: str,
        descriptor: int,
        name: str,
        frontier: Callable[[], int],
        *,
        moves_parts: bool = True,
        may_grow: bool = True,
        version: Callable[[], Hashable] = lambda: None,
        left: str = "",
    ) -> Verification | None:
        """Begin to hash what moves, if verifying is wanted and possible; None if not.

        path: on the server; descriptor: of the file here; name: for messages; frontier: tells up
        to where the file here is complete; moves_parts: whether a part can be moved again, if the
        server knows ranges; may_grow: see `RemoteFile`; version: tells what differs once others
        have written the file here, if they may; left: what a file that stays wrong leaves behind,
        for messages. Raises VerifyError if the user insists in vain.
        """
        method = choose_method(dialogue)
        if method is None:
            return None
        remote = RemoteFile(dialogue, path, method, may_grow=may_grow)
        return cls(
            dialogue,
            remote,
            descriptor,
            name,
            frontier,
            moves_parts=moves_parts,
            version=version,
            left=left,
        )

    def ask_early(self, size: int | None) -> None:
        """Ask the server ahead of time; see `RemoteFile`."""
        self._remote.ask_early(size)

    def ask_beside(self) -> None:
        """Ask the server while the file moves; see `RemoteFile`."""
        self._remote.ask_beside()

    async def told_beside(self, size: int) -> None:
        """Wait until the answer to that is there; see `RemoteFile`."""
        await self._remote.told_beside(size)

    async def stop(self) -> None:
        """Stop to hash. Has to be called before the file is closed."""
        if self._follower is not None:
            await self._follower.stop()

    async def settle(self, size: int, mend: Mend) -> bool:
        """Compare both files, `size` bytes, and mend until they are the same.

        False if they cannot be compared. Raises DiffersError if only the whole file can be moved
        again, VerifyError if mending does not help or if nothing can be verified and the user
        insists.
        """
        try:
            if await self._is_same(size):
                algorithm = self._remote.method.algorithm
                self._dialogue.trace(f"{self._name}: {algorithm} is the same at both ends")
                return True
        except CannotVerify as error:
            if self._dialogue.options.verify == "always":
                raise VerifyError(f"{self._name}: cannot be verified: {error}") from error
            self._dialogue.notice_once(f"{self._name}: not verified: {error}")
            return False
        except LocalFileError as error:  # it became shorter, for one
            raise LocalFileError(self._with_left(str(error))) from error
        if not self._moves_parts:
            raise DiffersError(
                self._with_left(f"{self._name}: differs from the original, both times it was moved")
            )
        self._dialogue.notice(f"{self._name}: differs from the original, mending it")
        if not await self._mended(size, mend):
            raise self._failure()
        self._dialogue.notice(f"{self._name}: mended")
        return True

    async def _mended(self, size: int, mend: Mend) -> bool:
        """Move again what differs, until nothing does; False if something always does.

        Raises DiffersError if no part differs: there is more on the server than there should be.
        Raises VerifyError where it refuses, and whatever else ends it before its end.
        """
        try:
            for _ in range(ROUNDS):
                parts = gathered(await self._differing(size))
                if not parts:
                    raise DiffersError(self._with_left(f"{self._name}: does not end as it should"))
                for part in parts:
                    self._dialogue.trace(f"bytes {part.start} to {part.end - 1} are moved again")
                    await mend(part)
                if await self._is_same(size):
                    return True
        except DiffersError:
            raise
        except (CannotVerify, VerifyError) as error:
            raise self._failure(f" ({error})") from error
        except XftpError:  # such as a lost connection, after which the user may try again
            if self._left:
                self._dialogue.notice(f"{self._name}: {self._left}")
            raise
        return False

    def _failure(self, why: str = "") -> VerifyError:
        algorithm = self._remote.method.algorithm
        return VerifyError(
            self._with_left(
                f"{self._name}: differs from the original ({algorithm}),"
                f" and could not be mended{why}"
            )
        )

    def _with_left(self, sentence: str) -> str:
        return f"{sentence}; {self._left}" if self._left else sentence

    async def _is_same(self, size: int) -> bool:
        own = asyncio.create_task(self._own_digest(size))
        try:
            return await self._remote.digest(size) == await own
        finally:
            own.cancel()
            await asyncio.wait([own])
            if not own.cancelled():
                own.exception()  # another error came first, or it was raised already

    async def _own_digest(self, size: int) -> str:
        """Hash one version of the file here. Raises VerifyError if others go on writing it."""
        follower, self._follower = self._follower, None
        last = ""
        if follower is not None:
            last = await follower.finish(size)
            if self._version() == self._version_followed:
                return last
        for _ in range(ROUNDS):
            before = self._version()
            (digest,) = await self._own_digests([ByteRange(0, size)])
            if self._version() == before or digest == last:  # the same, as of a file that grows
                return digest
            last = digest
        raise VerifyError(self._with_left(f"{self._name}: is being changed, again and again"))

    async def _own_digests(self, parts: Sequence[ByteRange]) -> list[str]:
        algorithm = self._remote.method.algorithm

        return await in_thread(
            lambda: [
                digest_of(self._descriptor, self._name, algorithm, part.start, part.end)
                for part in parts
            ]
        )

    async def _differing(self, size: int) -> list[ByteRange]:
        """Find the parts that differ: divide what differs, ask, and divide again."""
        parts, asked = divided(ByteRange(0, size)), 0
        while True:
            asked += len(parts)
            theirs = await self._remote.digests(parts, sum(each.size for each in parts))
            ours = await self._own_digests(parts)
            differ = [
                part for part, one, other in zip(parts, theirs, ours, strict=True) if one != other
            ]
            parts = [piece for part in differ for piece in divided(part)]
            if len(parts) == len(differ) or asked + len(parts) > MOST_QUESTIONS:
                return differ


def divided(part: ByteRange) -> list[ByteRange]:
    """Divide a part, on multiples of the smallest; one that is as small stays as it is."""
    pieces = max(1, -(-part.size // SMALLEST_PART_BYTES))
    step = -(-pieces // FAN_OUT) * SMALLEST_PART_BYTES
    return [
        ByteRange(start, min(start + step, part.end)) for start in range(part.start, part.end, step)
    ]


def gathered(parts: Sequence[ByteRange]) -> list[ByteRange]:
    """Join parts that touch; if too many are left, take all from the first to the last."""
    joined: list[ByteRange] = []
    for part in parts:
        if joined and joined[-1].end == part.start:
            joined[-1] = ByteRange(joined[-1].start, part.end)
        else:
            joined.append(part)
    if len(joined) > MOST_RANGES:
        return [ByteRange(joined[0].start, joined[-1].end)]
    return joined


class StreamVerification:
    """The comparison of a stream, which is handed on at once and cannot be mended."""

    def __init__(self, dialogue: Dialogue, remote: RemoteFile) -> None:
        self._dialogue = dialogue
        self._remote = remote
        self._content = new_hash(remote.method.algorithm)

    @classmethod
    def begin(cls, dialogue: Dialogue, path: str) -> StreamVerification | None:
        """Begin if verifying is wanted and possible; as that of `Verification`."""
        method = choose_method(dialogue)
        return None if method is None else cls(dialogue, RemoteFile(dialogue, path, method))

    def ask_early(self) -> None:
        """Ask the server ahead of time; see `RemoteFile`."""
        self._remote.ask_early(None)

    def take(self, piece: memoryview) -> None:
        """Take the next bytes of the stream."""
        self._content.update(piece)

    async def settle(self, name: str, size: int) -> None:
        """Compare. Raises VerifyError if the stream, `size` bytes, was not the file."""
        try:
            theirs = await self._remote.digest(size)
        except CannotVerify as error:
            if self._dialogue.options.verify == "always":
                raise VerifyError(f"{name}: cannot be verified: {error}") from error
            self._dialogue.notice_once(f"{name}: not verified: {error}")
            return
        if theirs != self._content.hexdigest():
            algorithm = self._remote.method.algorithm
            raise VerifyError(f"{name}: what came differs from the original ({algorithm})")
