"""What the sockets' settings do to a real xftp download over an emulated satellite path."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bench.emulated_path import CLIENT, SERVER, path
from bench.knobs import Run, download
from bench.peers import Place
from bench.runner import workplace, write_random
from bench.wire import Segment, segments
from mininet_topos.links import Way

from .bpf_support import needs_bpf

pytestmark = [*needs_bpf, pytest.mark.slow]

DOWN_BPS, RTT_S = 1.536e6, 0.56
"""Of the ACTS satellite, a T1 (Allman 1997 section 2.2.1)."""

SLOW_START_S = 4 * RTT_S
"""From 10 segments past the window, and the end of the connection."""

SEGMENT_BYTES = 1448
"""Payload of a full segment with time stamps over an MTU of 1500."""

SEGMENT_RTT_S = RTT_S + 1500 * 8 / DOWN_BPS
"""From a full segment's leaving to its acknowledgement: with the time that the T1 takes for it."""


@dataclass(frozen=True)
class DataConnection:
    """What passed between the connection that carried the file and its listener."""

    sent: list[Segment]
    """The server's segments with data."""

    acknowledgements: list[Segment]
    """All of the client's."""

    @property
    def window_scale(self) -> int:
        return self.acknowledgements[0].window_scale or 0

    def windows_bytes(self, begin_s: float, end_s: float) -> list[int]:
        """Give the windows that the client advertised in a time."""
        return [
            segment.window_field << self.window_scale
            for segment in self.acknowledgements
            if begin_s <= segment.at_s < end_s and not segment.syn
        ]


def data_connection(capture: Path) -> DataConnection:
    """Find the connection that the server sent most on."""
    noted = list(segments(capture))
    carried: dict[tuple[int, int], int] = {}
    for segment in noted:
        if segment.source[0] == SERVER:
            ports = (segment.source[1], segment.target[1])
            carried[ports] = carried.get(ports, 0) + segment.payload_bytes
    server, client = max(carried, key=lambda ports: carried[ports])
    return DataConnection(
        [
            s
            for s in noted
            if s.source == (SERVER, server) and s.target == (CLIENT, client) and s.payload_bytes
        ],
        [s for s in noted if s.source == (CLIENT, client) and s.target == (SERVER, server)],
    )


Fetch = Callable[..., tuple[Run, DataConnection]]


@pytest.fixture
def fetch(loaded_algorithms: None, tmp_path: Path) -> Iterator[Fetch]:
    """Fetch a file over the T1, with every segment acknowledged."""
    with workplace(tmp_path, 1 << 24) as place:

        def run(size_bytes: int, *arguments: str) -> tuple[Run, DataConnection]:
            return _fetch(place, tmp_path / "capture", size_bytes, arguments)

        yield run


def _fetch(
    place: Place, capture: Path, size_bytes: int, arguments: tuple[str, ...]
) -> tuple[Run, DataConnection]:
    source = place.root / "file"
    write_random(source, size_bytes)
    there, back = Way(delay_s=RTT_S / 2), Way(delay_s=RTT_S / 2, rate_bps=DOWN_BPS)
    with path(there, back, acknowledge_all=True, capture=capture) as link:
        run = download(link, place, source, arguments)
    return run, data_connection(capture)


def test_a_small_window_bounds_the_download(fetch: Fetch) -> None:
    """24 KB, 560 ms: window/RTT (Allman 1997 equation 2.2).

    How much window the kernel makes of a buffer depends on the memory that the device takes for a
    packet, so the window is the one that was advertised: once the program has read everything.
    """
    run, seen = fetch(500_000, "-n1", "--cc", "cubic", "--rcvbuf", "21000")
    begin_s, end_s = seen.sent[0].at_s + SLOW_START_S, seen.sent[-1].at_s
    window_bytes = max(seen.windows_bytes(begin_s, end_s))
    assert window_bytes == pytest.approx(24 * 1024, rel=0.2)
    assert rate_bytes_per_s(seen.sent, begin_s, window_bytes) == pytest.approx(
        window_bytes / SEGMENT_RTT_S, rel=0.03
    )
    # The whole download takes the time of equation 2.2 too, slow start apart.
    assert run.data_s == pytest.approx(
        run.report["bytes"] * SEGMENT_RTT_S / window_bytes, abs=SLOW_START_S
    )
    assert run.report["connections"][0]["socket"]["receive_buffer_bytes"] == 21_000


def rate_bytes_per_s(sent: list[Segment], begin_s: float, window_bytes: int) -> float:
    """Measure over a whole number of windows: each leaves in its own round trip."""
    steady = [segment for segment in sent if segment.at_s >= begin_s]
    flight = window_bytes // SEGMENT_BYTES
    last = (len(steady) - 1) // flight * flight
    assert last >= 8 * flight
    sent_bytes = sum(segment.payload_bytes for segment in steady[:last])
    return sent_bytes / (steady[last].at_s - steady[0].at_s)


@pytest.mark.parametrize("segments_asked", [4, 33])
def test_the_first_flight_is_the_initial_window(fetch: Fetch, segments_asked: int) -> None:
    """What goes over the wire before the first acknowledgement is what was asked for."""
    asked = ("--cc", "xftp_abc", "--initial-window", str(segments_asked))
    run, seen = fetch(200_000, "-n1", *asked, "--strict-tuning")
    end_s = seen.sent[0].at_s + 0.9 * RTT_S
    first_flight = [segment.payload_bytes for segment in seen.sent if segment.at_s < end_s]
    assert first_flight == [SEGMENT_BYTES] * segments_asked
    assert run.report["connections"][0]["socket"]["congestion"] == "xftp_abc"
