"""Rates, sizes, times and losses: every way people write them, and every way they should not."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuning.errors import TuningError
from tuning.units import (
    MAX_LOSS,
    MAX_RATE_BPS,
    MAX_SIZE_BYTES,
    MAX_TIME_S,
    MIN_RATE_BPS,
    MIN_TIME_S,
    format_loss,
    format_rate,
    format_size,
    format_time,
    parse_loss,
    parse_rate,
    parse_size,
    parse_time,
)


@pytest.mark.parametrize(
    ("text", "rate_bps"),
    [
        ("50mbit", 50e6),
        ("50Mbit/s", 50e6),
        ("50 Mbit/s", 50e6),
        ("50MBIT/s", 50e6),
        ("50Mbps", 50e6),
        ("50Mb/s", 50e6),
        ("6.25MB/s", 50e6),
        ("6.25MBps", 50e6),
        ("6.25Mbyte/s", 50e6),
        ("6.25MB", 50e6),
        ("2M", 2e6),
        ("2m", 2e6),
        ("1536k", 1.536e6),
        ("1.536e6", 1.536e6),
        ("192000B/s", 1.536e6),
        ("1G", 1e9),
        ("1MiB/s", 8 * 2**20),
        ("1Kibit", 1024.0),
        ("  2 M ", 2e6),
        ("1000", 1000.0),
        ("10Tbit/s", 1e13),
    ],
)
def test_rate(text: str, rate_bps: float) -> None:
    assert parse_rate(text) == pytest.approx(rate_bps, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "bytes_"),
    [
        ("4MB", 4_000_000),
        ("4M", 4 * 2**20),
        ("64k", 65_536),
        ("64K", 65_536),
        ("64kB", 64_000),
        ("64KiB", 65_536),
        ("1GiB", 2**30),
        ("1GB", 10**9),
        ("1.5k", 1536),
        ("8192", 8192),
        ("8192 bytes", 8192),
        ("1TB", 10**12),
    ],
)
def test_size(text: str, bytes_: int) -> None:
    assert parse_size(text) == bytes_


@pytest.mark.parametrize(
    ("text", "time_s"),
    [
        ("600ms", 0.6),
        ("0.6s", 0.6),
        ("0.6 s", 0.6),
        ("20us", 2e-5),
        ("20µs", 2e-5),
        ("2min", 120.0),
    ],
)
def test_time(text: str, time_s: float) -> None:
    assert parse_time(text) == pytest.approx(time_s, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "loss"), [("1e-3", 1e-3), ("0.1%", 1e-3), ("0", 0.0), ("50%", 0.5), ("0.01", 0.01)]
)
def test_loss(text: str, loss: float) -> None:
    assert parse_loss(text) == pytest.approx(loss, rel=1e-12)


@pytest.mark.parametrize(
    ("parse", "text", "says"),
    [
        (parse_rate, "0", "zero"),
        (parse_rate, "0mbit", "zero"),
        (parse_rate, "fast", "'fast' is not a rate: write it as 50mbit"),
        (parse_rate, "-5M", "negative"),
        (parse_rate, "nan", "not a rate"),
        (parse_rate, "inf", "not a rate"),
        (parse_rate, "", "not a rate"),
        (parse_rate, "M", "not a rate"),
        (parse_rate, "2,5M", "not a rate"),
        (parse_rate, "1_000k", "not a rate"),
        (parse_rate, "50", "was 50M meant"),
        (parse_rate, "1e30", "more than any link"),
        (parse_rate, "1e999", "more than any link"),
        (parse_rate, "10i", "not a rate"),
        (parse_rate, "5M/h", "not a rate"),
        (parse_rate, "\u0665M", "not a rate"),
        (parse_size, "0", "less than one byte"),
        (parse_size, "-1", "negative"),
        (parse_size, "1.5", "whole number"),
        (parse_size, "big", "not a size"),
        (parse_size, "1e9T", "more than any file"),
        (parse_size, "5ib", "not a size"),
        (parse_time, "600", "has no unit: write 600ms or 600s"),
        (parse_time, "0s", "not between"),
        (parse_time, "2h", "not a time"),
        (parse_time, "-3ms", "negative"),
        (parse_time, "1e9s", "not between"),
        (parse_time, "nan", "not a time"),
        (parse_loss, "60%", "more than half"),
        (parse_loss, "2", "more than half"),
        (parse_loss, "-0.1", "negative"),
        (parse_loss, "some", "not a loss"),
    ],
)
def test_refused(parse: Callable[[str], float], text: str, says: str) -> None:
    with pytest.raises(TuningError) as refusal:
        parse(text)
    assert says in str(refusal.value)


@pytest.mark.parametrize("parse", [parse_rate, parse_size, parse_time, parse_loss])
def test_a_long_text_is_refused_and_not_repeated(parse: Callable[[str], float]) -> None:
    with pytest.raises(TuningError) as refusal:
        parse("1" * 100_000)
    assert len(str(refusal.value)) < 120


def test_the_error_is_a_value_error() -> None:
    assert issubclass(TuningError, ValueError)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        (format_rate(50e6), "50 Mbit/s"),
        (format_rate(1.536e6), "1.536 Mbit/s"),
        (format_rate(999_999.9), "1 Mbit/s"),
        (format_rate(256e3), "256 kbit/s"),
        (format_size(0), "0 B"),
        (format_size(4 * 2**20), "4.19 MB"),
        (format_size(50_000_000), "50 MB"),
        (format_time(0.56), "560 ms"),
        (format_time(9.534), "9.53 s"),
        (format_time(0.99999), "1 s"),
        (format_time(120.4), "120 s"),
        (format_time(0), "0 s"),
        (format_loss(1e-3), "0.1%"),
        (format_loss(0), "0%"),
    ],
)
def test_written(text: str, written: str) -> None:
    assert text == written


@given(st.floats(MIN_RATE_BPS, MAX_RATE_BPS))
def test_rate_is_read_back(rate_bps: float) -> None:
    assert parse_rate(format_rate(rate_bps)) == pytest.approx(rate_bps, rel=1e-3)


@given(st.integers(1, MAX_SIZE_BYTES // 2))
def test_size_is_read_back(size_bytes: int) -> None:
    assert parse_size(format_size(size_bytes)) == pytest.approx(size_bytes, rel=1e-2)


@given(st.floats(MIN_TIME_S, MAX_TIME_S * 0.99))
def test_time_is_read_back(time_s: float) -> None:
    assert parse_time(format_time(time_s)) == pytest.approx(time_s, rel=1e-2)


@given(st.floats(1e-9, MAX_LOSS))
def test_loss_is_read_back(loss: float) -> None:
    assert parse_loss(format_loss(loss)) == pytest.approx(loss, rel=1e-2)


@given(st.text(max_size=60))
def test_any_text_gives_a_number_or_the_error(text: str) -> None:
    for parse in (parse_rate, parse_size, parse_time, parse_loss):
        try:
            assert parse(text) >= 0
        except TuningError as refusal:
            assert str(refusal)
