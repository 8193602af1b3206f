"""How many round trips a cold, anonymous transfer takes to its first byte, counted on the wire."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import trustme

from bench import peers
from bench.emulated_path import CLIENT, SERVER, path
from bench.runner import workplace, write_random
from bench.wire import Segment, segments
from mininet_topos.links import Way

RTT_S = 0.5
"""Long beside what two programs take to answer on a busy machine."""

SIZE_BYTES = 100_000
TIMEOUT_S = 60

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root: makes network namespaces"),
    pytest.mark.skipif(not Path("/dev/net/tun").exists(), reason="needs /dev/net/tun"),
    pytest.mark.skipif(shutil.which("ip") is None, reason="needs the ip command (iproute2)"),
]


@dataclass(frozen=True)
class Seen:
    """What passed between one xftp and one xftpd."""

    segments: list[Segment]

    @property
    def began_s(self) -> float:
        """When the first SYN left."""
        return self.segments[0].at_s

    def _is_control(self, segment: Segment) -> bool:
        return self.segments[0].target[1] in (segment.source[1], segment.target[1])

    def first_byte_round_trips(self, sender: str, least_bytes: int = 1) -> float:
        """Round trips from the first SYN until the first byte of the file is there.

        least_bytes: payload that a segment has at least if it holds some of the file.
        """
        # Connections of the session before may still have something to say.
        opened = {frozenset((each.source, each.target)) for each in self.segments if each.syn}
        first = next(
            segment
            for segment in self.segments
            if segment.source[0] == sender
            and segment.payload_bytes >= least_bytes
            and not self._is_control(segment)
            and frozenset((segment.source, segment.target)) in opened
        )
        return (first.at_s + RTT_S / 2 - self.began_s) / RTT_S

    def first_command_round_trips(self) -> float:
        """Round trips from the first SYN until the first command left."""
        first = next(
            segment
            for segment in self.segments
            if segment.source[0] == CLIENT and segment.payload_bytes and self._is_control(segment)
        )
        return (first.at_s - self.began_s) / RTT_S

    def opening_s(self) -> list[float]:
        """When the SYN of each data connection left."""
        return [
            segment.at_s
            for segment in self.segments
            if segment.syn and segment.acknowledged is None and not self._is_control(segment)
        ]


Run = Callable[..., list[Seen]]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """Run `xftp` with arguments over the long path, as often as asked, with one memory."""
    with workplace(tmp_path, 1 << 22) as place:
        write_random(place.root / "file", SIZE_BYTES)

        def do(
            verb: str, *arguments: str, times: int = 1, server_options: tuple[str, ...] = ()
        ) -> list[Seen]:
            return _run(place, tmp_path, verb, arguments, times, server_options)

        yield do


def _run(
    place: peers.Place,
    folder: Path,
    verb: str,
    arguments: tuple[str, ...],
    times: int,
    server_options: tuple[str, ...],
) -> list[Seen]:
    way, capture = Way(delay_s=RTT_S / 2), folder / "capture"
    ends: list[int] = []
    with (
        path(way, way, capture=capture) as link,
        link.server.entered(),
        peers.xftpd(place, SERVER, server_options) as server,
        link.client.entered(),
    ):
        url = f"ftp://{SERVER}:{server.port}/"
        for number in range(times):
            target = folder / f"arrived-{number}"
            moves = [str(place.root / "file"), f"{url}incoming/{number}"]
            if verb == "get":
                moves = ["-o", str(target), f"{url}file"]
            subprocess.run(
                [peers.find("xftp"), verb, "-n4", *arguments, *moves],
                check=True,
                stdin=subprocess.DEVNULL,
                env=dict(place.environment),
                timeout=TIMEOUT_S,
            )
            if verb == "put":
                target = place.root / "incoming" / str(number)
            assert target.read_bytes() == (place.root / "file").read_bytes()
            target.unlink()  # the next try moves it anew
            ends.append(server.port)
    return _sessions(list(segments(capture)), ends[0])


def _sessions(noted: list[Segment], port: int) -> list[Seen]:
    """Cut what was seen at each SYN to the control port."""
    begins = [
        index
        for index, segment in enumerate(noted)
        if segment.syn and segment.acknowledged is None and segment.target[1] == port
    ]
    return [Seen(noted[a:b]) for a, b in zip(begins, [*begins[1:], len(noted)], strict=True)]


TRIES = 3
"""A busy machine may take longer to answer than a part of a round trip, but hardly each time."""

HALF_A_TRIP = 0.45
"""What arrives comes after whole round trips; up to this much of one the programs may think."""


A_TRIP = 0.9
"""The same within TLS, where both ends have more to reckon."""

FULL_BYTES = 1000
"""More than a server says in a handshake that resumes a session, and less than a full segment."""


def first_of(
    run: Run, limit: float, verb: str, *arguments: str, server_options: tuple[str, ...] = ()
) -> Seen:
    """Run until the first byte is there after fewer than `limit` round trips, or TRIES times."""
    sender = SERVER if verb == "get" else CLIENT
    for _ in range(TRIES):
        (seen,) = run(verb, *arguments, server_options=server_options)
        if seen.first_byte_round_trips(sender) < limit:
            break
    return seen


@pytest.mark.parametrize(
    ("arguments", "round_trips"),
    [
        (("--no-memory",), 4),
        (("--no-memory", "--assume-xftpd"), 3),
        (("--no-memory", "--active"), 4),
        (("--no-memory", "--active", "--assume-xftpd"), 3),
    ],
)
def test_the_first_byte_of_a_cold_download(
    run: Run, arguments: tuple[str, ...], round_trips: int
) -> None:
    seen = first_of(run, round_trips + HALF_A_TRIP, "get", *arguments)
    assert seen.first_byte_round_trips(SERVER) < round_trips + HALF_A_TRIP
    early = "--assume-xftpd" in arguments
    assert seen.first_command_round_trips() < (1 if early else 2) + HALF_A_TRIP
    opening_s = seen.opening_s()
    assert len(opening_s) == 4
    assert max(opening_s) - min(opening_s) < RTT_S / 2  # all at once


def test_the_first_byte_from_a_server_without_a_standing_port(run: Run) -> None:
    without = ("--data-port", "none")
    seen = first_of(run, 5 + HALF_A_TRIP, "get", "--no-memory", server_options=without)
    assert 4.9 < seen.first_byte_round_trips(SERVER) < 5 + HALF_A_TRIP


@pytest.mark.parametrize(
    ("arguments", "round_trips"),
    [
        (("--assume-xftpd",), 7),
        (("--assume-xftpd", "--active"), 8),  # who accepts has to hear of it before his hello
    ],
)
def test_the_first_byte_within_tls(
    run: Run, tmp_path: Path, arguments: tuple[str, ...], round_trips: int
) -> None:
    """One round trip for AUTH, one for each handshake: all data connections share theirs."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    certificate = tmp_path / "cert.pem"
    authority.issue_cert(SERVER).private_key_and_cert_chain_pem.write_to_path(str(certificate))
    tls = ("--tls-cert", str(certificate), "--tls-key", str(certificate), "--require-tls", "data")
    arguments += ("--no-memory", "--tls", "--cacert", str(tmp_path / "ca.pem"))
    for _ in range(TRIES):
        (seen,) = run("get", *arguments, server_options=tls)
        took = seen.first_byte_round_trips(SERVER, FULL_BYTES)
        if took < round_trips + A_TRIP:
            break
    assert round_trips <= took < round_trips + A_TRIP
    opening_s = seen.opening_s()
    assert len(opening_s) == 4
    assert max(opening_s) - min(opening_s) < RTT_S / 2  # all at once


@pytest.mark.parametrize(
    ("arguments", "round_trips"),
    [
        (("--assume-xftpd",), 3.5),
        (("--assume-xftpd", "--active"), 4.5),  # the name is asked for before it is written to
    ],
)
def test_the_first_byte_of_a_cold_upload(
    run: Run, arguments: tuple[str, ...], round_trips: float
) -> None:
    seen = first_of(run, round_trips + HALF_A_TRIP, "put", "--no-memory", *arguments)
    assert seen.first_byte_round_trips(CLIENT) < round_trips + HALF_A_TRIP


def test_a_server_that_is_remembered_is_dialled_for_everything_at_once(run: Run) -> None:
    """What has to be loaded meanwhile is part of a round trip, and no more of it is waited for."""
    for _ in range(TRIES):
        stranger, known = run("get", times=2)
        took = known.first_byte_round_trips(SERVER)
        if took < 2 + A_TRIP:
            break
    assert stranger.first_command_round_trips() > 1.9
    assert known.first_command_round_trips() < 1 + HALF_A_TRIP
    assert 1.9 < took < 2 + A_TRIP
    opening_s = known.opening_s()
    assert len(opening_s) == 4
    assert max(opening_s) < known.began_s + RTT_S, "the control connection is not there yet"
