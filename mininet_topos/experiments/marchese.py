"""What the rows of Marchese 2001 share: ITALSAT's 2 Mbit/s, its TCP, its two files.

What the text calls `buf` is the memory of sender and receiver; the window that Linux 2.2 offered
was half of it ("measured to be 32 kbytes … the receiver buffer space … 64 kbytes", section 2).

The text's times tell more of its link than it says itself. 49.21 s for the reference are 87 windows
of 22 segments and the rounds of slow start, 0.54 s each. Table 5's times are whole rounds of that
length too: 4 with K = 2 and 3 from K = 4 on, as many as a window takes that begins with 6 segments,
grows by K per ACK, and gets an ACK for every second segment.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from ..tcp_settings import TcpSettings, nineties
from .flows import Crowd, Sockets
from .measures import Metric, queue_drops
from .outcome import Outcome
from .spec import Point, Published, Scenario

KB = 1024

RATE_BYTES_PER_S = 250_000
SEGMENT_BYTES = 1460
GOODPUT_BYTES_PER_S = RATE_BYTES_PER_S * SEGMENT_BYTES / 1500

LINK_RTT_S = 0.53
"""Of propagation; a segment's transmission on three links makes it 0.54 s."""

QUEUE_PACKETS = 64
"""The text's router is "a sort of black box"; this holds what K = 4 overruns the link by, and
neither what larger K do nor a window of 320 KB."""

LONG_BYTES = 2_788_500
"""H = 2.8 Mbytes: time by throughput of table 4."""

SHORT_BYTES = 104_300
"""H = 100 kbytes: time by throughput of table 5."""

LONG, SHORT = "2.8 MB", "100 KB"
FILES = {SHORT: SHORT_BYTES, LONG: LONG_BYTES}

REFERENCE_PLACE = 1
"""Where it stands on axes of what slow start is changed by: it is not."""

BEST_BUFFER_BYTES = 320 * KB
REFERENCE_BUFFER_BYTES = 64 * KB

BUFFERS = {float(size): str(size) for size in (64, 128, 192, 256, 320, 384, 480, 640)}
"""Places of axes in kbytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """One of the text's TCPs. The defaults are the best of its section 5.1."""

    buffer_bytes: int = BEST_BUFFER_BYTES
    initial_window: int = 6
    congestion: str = "xftp_reno97"
    parameters: tuple[tuple[str, float], ...] = ()

    @property
    def sockets(self) -> Sockets:
        """Give what its sockets are set to."""
        return Sockets(
            congestion=self.congestion,
            initial_window_segments=self.initial_window,
            parameters=self.parameters,
        )

    @property
    def window_bytes(self) -> int:
        """Give the window that its receiver offers."""
        return self.buffer_bytes // 2


REFERENCE = Tuning(buffer_bytes=REFERENCE_BUFFER_BYTES, initial_window=1)
TUNED = Tuning()


def by_k(k: int) -> Tuning:
    """Give slow start that adds K segments per ACK (equation 2); K = 1 is the standard."""
    return Tuning(congestion="xftp_kack", parameters=(("k", k),)) if k > 1 else TUNED


def linear(thr: int) -> Tuning:
    """Give slow start whose n-th ACK adds n segments up to a window of thr (equation 3)."""
    return Tuning(congestion="xftp_linthr", parameters=(("thr_segments", thr),))


def stack(window_bytes: int) -> TcpSettings:
    """Give Linux 2.2.1 as the text describes it: NewReno with SACK, least time-out 200 ms."""
    return nineties(
        sack=True,
        mss_bytes=SEGMENT_BYTES,
        rto_min_s=None,
        window_bytes=window_bytes,
        receive_buffer_bytes=(4096, 4 << 20, 4 << 20),
    )


def point(
    series: str, x: float, tuning: Tuning, *, size_bytes: int = LONG_BYTES, transfers: int = 1
) -> Point:
    """Give some transfers at once; one by default."""
    window_rate = tuning.window_bytes / (LINK_RTT_S + 0.01)
    rate = min(0.8 * GOODPUT_BYTES_PER_S, transfers * window_rate)
    return Point(
        series=series,
        x=x,
        scenario=Scenario(
            topology="italsat",
            parameters={"queue": QUEUE_PACKETS, "rtt_s": LINK_RTT_S},
            tcp=stack(tuning.window_bytes),
            delayed_acks=True,
            flows=(
                Crowd(
                    name="ftp",
                    size_bytes=size_bytes,
                    transfers=transfers,
                    window_bytes=tuning.window_bytes,
                    sockets=tuning.sockets,
                ),
            ),
            seconds=6 * LINK_RTT_S + transfers * size_bytes / rate,
            timeout_s=300,
        ),
    )


def both_files(
    tunings: Iterable[tuple[float, Tuning]], left_out: Collection[tuple[str, float]] = ()
) -> tuple[Point, ...]:
    """Give a transfer of each file by each TCP, at its place, and by the reference at 1.

    left_out: series and places that are not run.
    """
    places = list(tunings)
    return tuple(
        point(series, x, tuning, size_bytes=size_bytes)
        for name, size_bytes in FILES.items()
        for series, x, tuning in (
            (reference_of(name), REFERENCE_PLACE, REFERENCE),
            *((name, x, tuning) for x, tuning in places),
        )
        if (series, x) not in left_out
    )


def reference_of(file: str) -> str:
    """Name the series of a file's transfer by the reference."""
    return f"{file}, reference"


def published_times(short: Mapping[int, float], long: Mapping[int, float]) -> tuple[Published, ...]:
    """Give the text's times of both files by place, and those of the reference."""
    by_series: dict[str, Mapping[int, float]] = {
        reference_of(SHORT): {REFERENCE_PLACE: 4.42},
        reference_of(LONG): {REFERENCE_PLACE: 49.21},
        SHORT: short,
        LONG: long,
    }
    return tuple(
        Published(metric="time", series=series, x=x, value=value)
        for series, times in by_series.items()
        for x, value in times.items()
    )


def crowds(tunings: Iterable[tuple[str, Tuning]], counts: Iterable[int]) -> tuple[Point, ...]:
    """Give transfers of 100 KB, so many at once, by each TCP."""
    named = list(tunings)
    return tuple(
        point(name, count, tuning, size_bytes=SHORT_BYTES, transfers=count)
        for count in counts
        for name, tuning in named
    )


def mean_time(outcome: Outcome) -> float:
    """Give the mean time of the transfers in seconds."""
    each_s: list[float] = outcome.flow("ftp").report["transfers_s"]
    return sum(each_s) / len(each_s)


def mean_throughput(outcome: Outcome) -> float:
    """Give the mean of the transfers' throughputs in kbytes/s."""
    each_s: list[float] = outcome.flow("ftp").report["transfers_s"]
    size = outcome.flow("ftp").bytes / len(each_s)
    return sum(size / seconds for seconds in each_s) / len(each_s) / 1000


TIME = Metric(name="time", label="transfer time, s", measure=mean_time, digits=4)
THROUGHPUT = Metric(
    name="throughput", label="mean throughput of a connection, kbytes/s", measure=mean_throughput
)


def time_change(reference: str) -> Metric:
    """Give the change of the time against the series `reference` at the least buffer."""
    return Metric(
        name="time change",
        label="transfer time against the reference, %",
        measure=mean_time,
        baseline=lambda series, x: (reference, REFERENCE_BUFFER_BYTES // KB),
        digits=4,
    )


DROPS = Metric(name="drops", label="packets dropped", measure=queue_drops("satellite"))

DEVIATIONS = (
    "times are from the connection to the last byte's arrival; the text does not tell from when to "
    "when its own are",
    f"the router's queue is not told in the text: {QUEUE_PACKETS} packets; the RTT of "
    f"{LINK_RTT_S + 0.01:.2f} s is what the reference's time says, the text that it is above 0.5 s",
    "the receiver acknowledges every second segment as every second ACK is left out on its way: "
    "Linux 2.2's own quick ACKs at the start of a connection are not recreated",
    "the sender's buffer holds nothing back: the window is what the receiver offers, half of buf",
)

LINEAR_DEVIATION = (
    "Linear thr counts ACKs, so the quick ACKs of Linux 2.2 at the start of a connection would "
    "have made it faster than here, and faster the higher thr is"
)
