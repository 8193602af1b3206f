"""What the rows of chapter 3 of Allman's thesis share: FTP of five sizes with a changed slow start.

A run is `xftp get -n 1`, plain FTP. The receiver acknowledges every second segment throughout, as
the text's did: the second modification is about just that.
"""

from __future__ import annotations

from collections.abc import Iterable

from .allman import KB, MB, RTT_S, SIZES, stack
from .flows import Sockets, Xftp
from .measures import Metric, queue_drops, throughput
from .spec import Figure, Point, Scenario

STANDARD = "standard"
"""One segment per ACK, initial window 1: what gains are counted against."""

QUEUE_PACKETS = 60
"""The text's is not told, only what it overflows at: a transfer of 200 KB with the second
modification, whose last round sends 145 segments for 72 acknowledged, and not without it."""

CALM_WINDOW_BYTES = 24 * KB
"""48 segments, which find room however they come."""

OVERRUNNING_WINDOW_BYTES = 256 * KB
"""512 segments: the channel and the queue hold 255."""

TYPICAL_BYTES_PER_S = 40_000
"""What both windows come to in a large file: the small one by itself, the large one by losses."""

INITIAL_WINDOWS = (1, 2, 4, 8, 16, 32)
QUICK_SIZES = (30 * KB, 200 * KB)


def sizes(quick: bool) -> tuple[int, ...]:
    """Give the files' sizes."""
    return QUICK_SIZES if quick else tuple(SIZES)


def point(
    series: str,
    x: float,
    *,
    size_bytes: int,
    window_bytes: int,
    congestion: str = "xftp_reno97",
    initial_window: int = 1,
) -> Point:
    """Give one FTP transfer."""
    sockets = Sockets(congestion=congestion, initial_window_segments=initial_window)
    return Point(
        series=series,
        x=x,
        scenario=Scenario(
            topology="acts_t1",
            parameters={"queue": QUEUE_PACKETS},
            tcp=stack(window_bytes),
            delayed_acks=True,
            flows=(Xftp(name="ftp", size_bytes=size_bytes, sockets=sockets),),
            seconds=25 * RTT_S + size_bytes / TYPICAL_BYTES_PER_S,
            timeout_s=600,
        ),
    )


def by_initial_window(window_bytes: int, congestion: str, quick: bool) -> tuple[Point, ...]:
    """Give the points of figures 3.1 to 3.4: a line per size over initial windows.

    With the standard algorithm the first place of each line is its own baseline; with another
    the baseline is a series of its own.
    """
    windows = (1, 4, 32) if quick else INITIAL_WINDOWS
    found = [
        point(
            SIZES[size],
            window,
            size_bytes=size,
            window_bytes=window_bytes,
            congestion=congestion,
            initial_window=window,
        )
        for size in sizes(quick)
        for window in windows
    ]
    if congestion != "xftp_reno97":
        found += standard(window_bytes, quick)
    return tuple(found)


def standard(window_bytes: int, quick: bool) -> Iterable[Point]:
    """Give the unmodified transfers, in a series per size at x = 0."""
    for size in sizes(quick):
        yield point(f"{SIZES[size]}, {STANDARD}", 0, size_bytes=size, window_bytes=window_bytes)


def gain_over_standard(series: str, x: float) -> tuple[str, float]:
    """Give the unmodified transfer of the same size."""
    return f"{series}, {STANDARD}", 0


def gain_over_first(series: str, x: float) -> tuple[str, float]:
    """Give the transfer of the same size with an initial window of one segment."""
    return series, 1


def gain(baseline: str) -> Metric:
    """Give the throughput gained against a baseline: "first" or "standard"."""
    measured = frozenset(SIZES.values())
    return Metric(
        name="gain",
        label="throughput change, %",
        measure=throughput(),
        baseline=gain_over_first if baseline == "first" else gain_over_standard,
        series=measured,
    )


OTHER_METRICS = (
    Metric(name="throughput", label="throughput, KB/s", measure=throughput(unit_bytes=KB)),
    Metric(name="drops", label="packets dropped", measure=queue_drops("satellite")),
)


def figure(title: str) -> Figure:
    """Give the figure of a gain over initial windows."""
    return Figure(
        metric="gain",
        title=title,
        x_label="initial window, segments",
        log_x=True,
        x_names={window: str(window) for window in INITIAL_WINDOWS},
    )


DEVIATIONS = (
    "windows and the router's queue are not told in the text; here windows of 24 KB (nothing lost) "
    f"and 256 KB (overrun) meet a queue of {QUEUE_PACKETS} packets",
    "Linux without SACK repairs one lost segment per round trip (NewReno): a hundred lost at once "
    "cost a minute, where plain Reno waited for a time-out and began anew",
    "the receiver acknowledges every second segment by leaving out every second ACK on the way "
    "back, as Linux's own receiver acknowledges every segment at first",
)

SMALL, HUNDRED, MIDDLE, LARGE, LARGEST = (
    SIZES[size] for size in (30 * KB, 100 * KB, 200 * KB, MB, 5 * MB)
)
