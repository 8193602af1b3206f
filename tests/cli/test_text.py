"""What people read: sizes, rates, times, and names that cannot harm a terminal."""

from __future__ import annotations

import click
import pytest

from xftp.cli.params import rate
from xftp.cli.text import (
    connection_summary,
    listing_lines,
    printable,
    seconds_text,
    size_text,
    summary,
)
from xftp.protocol.listings import Entry
from xftp.transport.report import ConnectionReport, TransferReport


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("plain name", "plain name"),
        ("Füße 文件", "Füße 文件"),
        ("\x1b[2J", "?[2J"),
        ("\x9b31m", "?31m"),
        ("a\r\nb", "a??b"),
        ("bell\x07\x7f", "bell??"),
        ("exe\u202egpj", "exe?gpj"),
        ("\udcff", "?"),
        ("line\u2028end", "line?end"),
    ],
)
def test_printable(raw: str, shown: str) -> None:
    assert printable(raw) == shown


@pytest.mark.parametrize(
    ("size", "shown"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (999, "999 bytes"),
        (1000, "1 kB"),
        (1536, "1.54 kB"),
        (256_000_000, "256 MB"),
        (999_600, "1 MB"),
        (10**18, "1 EB"),
    ],
)
def test_size_text(size: int, shown: str) -> None:
    assert size_text(size) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.003, "3 ms"),
        (0.42, "0.42 s"),
        (12.34, "12.3 s"),
        (59.96, "1:00 min"),
        (3725, "1:02:05 h"),
    ],
)
def test_seconds_text(seconds: float, shown: str) -> None:
    assert seconds_text(seconds) == shown


@pytest.mark.parametrize(
    ("text", "bytes_per_s"),
    [
        ("1000", 1000),
        ("500k", 500 * 1024),
        ("2M", 2 * 1024**2),
        ("1.5g", 1.5 * 1024**3),
        ("50mbit", 50e6 / 8),
        ("8bit", 1),
        ("1Mbit/s", 125000),
    ],
)
def test_rate(text: str, bytes_per_s: float) -> None:
    option = click.Option(["--limit-rate"])
    assert rate(click.Context(click.Command("get")), option, text) == bytes_per_s


def test_summary() -> None:
    connections = tuple(ConnectionReport(number, 0, None, None) for number in range(8))
    report = TransferReport(256_000_000, 0.42, True, connections)
    assert summary("file", report) == "file: 256 MB in 0.42 s, 610 MB/s over 8 connections"


def test_listing() -> None:
    entries = [
        Entry("b\x1b[0m", "file", 1234, None, {"unix.mode": "0640"}),
        Entry("a", "dir", None, 0.0, {}),
        Entry(".", "cdir", None, None, {}),
    ]
    assert listing_lines(entries, long=False) == ["a/", "b?[0m"]
    long = listing_lines(entries, long=True)
    assert long[0].startswith("d")
    assert "1970" in long[0] or "1969" in long[0]
    assert long[1].startswith("-rw-r----- 1234 ")
    assert long[1].endswith(" b?[0m")


@pytest.mark.parametrize(
    ("report", "seconds", "shown"),
    [
        (ConnectionReport(0, 5, None, None), 0.0, "connection 0: 5 bytes"),
        (
            ConnectionReport(7, 2_000_000, 0.0000142, 1),
            2.0,
            "connection 7: 2 MB, 1 MB/s, RTT 0.0142 ms, 1 segment sent again",
        ),
        (
            ConnectionReport(
                1,
                2_000_000,
                1.2345,
                20,
                {
                    "congestion": "xftp_hybla",
                    "send_buffer_bytes": 16384,
                    "initial_window_segments": 40,
                    "min_rtt_s": 0.5614,
                },
            ),
            2.0,
            "connection 1: 2 MB, 1 MB/s, xftp_hybla, initial window 40, "
            "RTT 1.23 s (least 561 ms), 20 segments sent again",
        ),
    ],
)
def test_connection_summary(report: ConnectionReport, seconds: float, shown: str) -> None:
    assert connection_summary(report, seconds) == shown
