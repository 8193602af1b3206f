"""What is compared: each case is one command that moves one file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from bench import peers

XFTP_CONNECTIONS = (1, 2, 4, 8)
VERIFIED_CONNECTIONS = 4
GRIDFTP_CONNECTIONS = (1, 4, 8)
LFTP_CONNECTIONS = 4


class Direction(Enum):
    GET = "get"
    PUT = "put"
    COPY = "copy"


@dataclass(frozen=True)
class Move:
    """One file on its way, as the command of a case sees it."""

    server: peers.Server | None
    source: Path
    target: Path

    def url(self, path: Path) -> str:
        """Return the URL of a file below the server's root, as an ordinary FTP client wants it."""
        assert self.server is not None
        return f"ftp://{peers.HOST}:{self.server.port}/{path.relative_to(self.server.root)}"

    def absolute_url(self, path: Path) -> str:
        """Return the same for a server whose root is that of the file system."""
        assert self.server is not None
        return f"ftp://{peers.HOST}:{self.server.port}{path}"


@dataclass(frozen=True)
class Case:
    name: str
    family: str
    """Programs of one family are compared with another family as a whole."""
    direction: Direction
    connections: int
    server: peers.ServerFactory | None
    program: str
    arguments: Callable[[Move], list[str]]

    @property
    def label(self) -> str:
        return f"{self.name}, {self.direction.value}, N={self.connections}"


def all_cases() -> list[Case]:
    return [
        Case("cp", "cp", Direction.COPY, 1, None, "cp", lambda m: [str(m.source), str(m.target)]),
        *(xftp(Direction.GET, count) for count in XFTP_CONNECTIONS),
        *(xftp(Direction.PUT, count) for count in XFTP_CONNECTIONS),
        *(
            xftp(each, VERIFIED_CONNECTIONS, verified=True)
            for each in (Direction.GET, Direction.PUT)
        ),
        *_gridftp(),
        Case(
            "vsftpd + lftp pget",
            "lftp",
            Direction.GET,
            LFTP_CONNECTIONS,
            peers.vsftpd,
            "lftp",
            lambda m: ["-c", f"pget -n {LFTP_CONNECTIONS} {m.url(m.source)} -o {m.target}"],
        ),
        Case("vsftpd + curl", "curl+vsftpd", Direction.GET, 1, peers.vsftpd, "curl", _curl),
        Case("xftpd + curl", "curl+xftpd", Direction.GET, 1, peers.xftpd, "curl", _curl),
    ]


def xftp(direction: Direction, count: int, *, verified: bool = False) -> Case:
    """Make a case of ours; the others do not compare hashes, so it does only where `verified`."""
    checks = "--verify" if verified else "--no-verify"

    def arguments(move: Move) -> list[str]:
        options = ["--no-memory", checks, "-n", str(count)]
        if direction is Direction.GET:
            return ["get", *options, "-o", str(move.target), move.url(move.source)]
        return ["put", *options, str(move.source), move.url(move.target)]

    name = "xftpd + xftp, verified" if verified else "xftpd + xftp"
    return Case(name, "xftp", direction, count, peers.xftpd, "xftp", arguments)


def _gridftp() -> Iterator[Case]:
    for direction in (Direction.GET, Direction.PUT):
        for count in GRIDFTP_CONNECTIONS:

            def arguments(
                move: Move, direction: Direction = direction, count: int = count
            ) -> list[str]:
                if direction is Direction.GET:
                    ends = [move.absolute_url(move.source), f"file://{move.target}"]
                else:
                    ends = [f"file://{move.source}", move.absolute_url(move.target)]
                return ["-nodcau", "-p", str(count), *ends]

            yield Case(
                "GridFTP",
                "gridftp",
                direction,
                count,
                peers.gridftp,
                "globus-url-copy",
                arguments,
            )


def _curl(move: Move) -> list[str]:
    return ["--silent", "--show-error", "-o", str(move.target), move.url(move.source)]
