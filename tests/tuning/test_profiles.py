"""The named links."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from tuning.errors import TuningError
from tuning.profiles import AUTO, NAMES, PROFILES, Direction, Profile, find
from tuning.sockopts import SocketTuning


@pytest.mark.parametrize(
    ("name", "down_bps", "up_bps", "rtt_s"),
    [
        ("t1-geo", 1.536e6, 1.536e6, 0.560),
        ("italsat", 2e6, 2e6, 0.520),
        ("hybrid", 2048e3, 256e3, 0.520),
        ("hts-geo", 50e6, 5e6, 0.600),
        ("leo", 200e6, 20e6, 0.040),
        ("lan", 1e9, 1e9, 0.001),
    ],
)
def test_figures(name: str, down_bps: float, up_bps: float, rtt_s: float) -> None:
    profile = find(name)
    assert profile.name == name
    assert (profile.down_bps, profile.up_bps, profile.rtt_s) == (down_bps, up_bps, rtt_s)
    assert profile.source and profile.description


def test_names() -> None:
    assert (*PROFILES, AUTO) == NAMES
    assert len(PROFILES) == 6
    with pytest.raises(TypeError):
        PROFILES["mine"] = find("leo")  # type: ignore[index]


def test_tuning_of_hts_geo() -> None:
    assert find("hts-geo").tuning(8, "download") == SocketTuning(
        send_buffer_bytes=1_875_000,
        receive_buffer_bytes=1_875_000,
        initial_window_segments=323,
        pacing_rate_bps=6.25e6,
        notsent_lowat_bytes=39_062,
    )
    upload = find("hts-geo").tuning(8, "upload")
    assert (upload.pacing_rate_bps, upload.initial_window_segments) == (625e3, 32)


@pytest.mark.parametrize("direction", ["download", "upload"])
@pytest.mark.parametrize("connections", [1, 4, 8, 12])
@pytest.mark.parametrize("name", [name for name in PROFILES if PROFILES[name].rated])
def test_the_parts_add_up(name: str, connections: int, direction: Direction) -> None:
    profile = find(name)
    link, tuning = profile.link(direction), profile.tuning(connections, direction)
    assert tuning.pacing_rate_bps is not None and tuning.receive_buffer_bytes is not None
    assert tuning.initial_window_segments is not None and tuning.notsent_lowat_bytes is not None
    assert tuning.pacing_rate_bps * connections == pytest.approx(link.rate_bps)
    assert tuning.receive_buffer_bytes * connections >= 2 * link.window_bytes - connections
    first_flight = tuning.initial_window_segments * connections * link.mss_bytes
    assert first_flight <= max(link.window_bytes, connections * link.mss_bytes)
    assert 16_384 <= tuning.notsent_lowat_bytes <= tuning.receive_buffer_bytes


def test_a_lan_is_left_to_the_system() -> None:
    tuning = find("lan").tuning(4, "upload")
    assert tuning == SocketTuning(notsent_lowat_bytes=1_562_500)


@pytest.mark.parametrize("name", PROFILES)
def test_every_profile_can_be_applied(name: str) -> None:
    tuning = find(name).tuning(8, "download")
    with socket.socket() as sock:
        refused = tuning.apply(sock, set_initial_window=lambda sock, segments: None)
    assert {difference.option for difference in refused} <= {
        "send_buffer_bytes",
        "receive_buffer_bytes",
    }


def test_a_measured_link() -> None:
    profile = Profile.measured(50e6, 0.6)
    assert profile.name == AUTO
    assert profile.tuning(8, "download") == find("hts-geo").tuning(8, "download")


@pytest.mark.parametrize(
    ("name", "says"),
    [("auto", "measured"), ("geo", "choose from t1-geo, italsat"), ("", "choose from")],
)
def test_no_such_profile(name: str, says: str) -> None:
    with pytest.raises(TuningError, match=says):
        find(name)


@pytest.mark.parametrize("direction", ["sideways", "", "Download"])
def test_no_such_direction(direction: Any) -> None:
    with pytest.raises(TuningError, match="direction"):
        find("leo").tuning(4, direction)


@pytest.mark.parametrize(("rate_bps", "rtt_s"), [(0, 0.6), (50e6, 0), (float("nan"), 0.6)])
def test_a_measurement_that_cannot_be(rate_bps: float, rtt_s: float) -> None:
    with pytest.raises(TuningError):
        Profile.measured(rate_bps, rtt_s)
