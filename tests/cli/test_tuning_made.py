"""Settings of sockets as they are made of a user's wish and of what the kernel has."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.tuning.support import payload_bps
from tuning import AUTO, PROFILES, SocketTuning
from tuning.congestion import CongestionError
from tuning.planning import BUFFERS_PER_WINDOW, buffer_bytes, initial_window_for
from tuning.sockopts import MAX_PACING_RATE_BPS, MIN_PACING_RATE_BPS
from xftp.cli.observed import CurrentParameters, ObservedTuner
from xftp.cli.supposed import SupposedTuning
from xftp.cli.tuning import RENTED, ClientTuning, Wish, loaded
from xftp.client.options import Direction
from xftp.errors import TuningRefused
from xftp.protocol.options import MultOptions

MADE = "xftp.cli.tuning"
KERNELS_OWN = "reno"
"""An algorithm that every process may choose."""

RATE_BPS = 50_000_000
RTT_S = 0.6
OURS = "xftp_hybla"


def test_nothing_is_made_of_nothing() -> None:
    assert Wish().socket_tuning("download", 4, RTT_S) == SocketTuning()
    assert Wish().request("download", 4, RTT_S) == MultOptions()


@pytest.mark.parametrize("direction", ["download", "upload"])
@pytest.mark.parametrize("connections", [1, 8])
@pytest.mark.parametrize("name", [name for name, each in PROFILES.items() if each.rated])
def test_a_profile(is_loaded: bool, name: str, connections: int, direction: Direction) -> None:
    link = PROFILES[name].link(direction)
    settings = Wish(profile=name).socket_tuning(direction, connections, 0.001)
    assert settings.send_buffer_bytes == buffer_bytes(link, connections)
    assert settings.receive_buffer_bytes == buffer_bytes(link, connections)
    assert settings.pacing_rate_bps == pytest.approx(link.rate_bps / connections)
    assert settings.congestion == (RENTED if is_loaded else None)
    assert settings.initial_window_segments is None  # RENTED finds its own
    asked = Wish(profile=name).request(direction, connections, 0.001)
    assert asked == MultOptions(
        rate_bps=round(link.rate_bps),
        send_buffer_bytes=buffer_bytes(link, connections),
        receive_buffer_bytes=buffer_bytes(link, connections),
    )


def test_a_link_without_a_rate_is_left_to_the_system(is_loaded: bool) -> None:
    settings = Wish(profile="lan").socket_tuning("download", 4, None)
    unsent = settings.notsent_lowat_bytes
    assert settings == SocketTuning(notsent_lowat_bytes=unsent)
    assert Wish(profile="lan").request("download", 4, None) == MultOptions()


def test_a_rate_makes_any_profile_one_with_a_rate(is_loaded: bool) -> None:
    asked = Wish(profile="lan", rate_bps=RATE_BPS).request("download", 4, None)
    assert asked.rate_bps == RATE_BPS
    asked = Wish(profile="t1-geo", rate_bps=RATE_BPS).request("upload", 2, None)
    assert asked.rate_bps == RATE_BPS
    assert asked.send_buffer_bytes == round(BUFFERS_PER_WINDOW * RATE_BPS / 8 * 0.560 / 2)


@pytest.mark.parametrize("profile", [None, AUTO])
def test_a_rate_and_the_measured_round_trip_time(is_loaded: bool, profile: str | None) -> None:
    wish = Wish(profile=profile, rate_bps=RATE_BPS)
    settings = wish.socket_tuning("download", 4, RTT_S)
    assert settings.send_buffer_bytes == round(BUFFERS_PER_WINDOW * RATE_BPS / 8 * RTT_S / 4)
    assert settings.pacing_rate_bps == RATE_BPS / 4
    assert settings.congestion == (RENTED if is_loaded else None)
    assert wish.request("download", 4, RTT_S).rate_bps == RATE_BPS


@pytest.mark.parametrize("rtt_s", [None, 0.0, 0.0001, 0.019])
def test_without_a_long_round_trip_time_buffers_are_left_alone(
    is_loaded: bool, rtt_s: float | None
) -> None:
    settings = Wish(rate_bps=RATE_BPS).socket_tuning("download", 4, rtt_s)
    congestion = RENTED if is_loaded else None
    assert settings == SocketTuning(pacing_rate_bps=RATE_BPS / 4, congestion=congestion)
    asked = Wish(rate_bps=RATE_BPS).request("download", 4, rtt_s)
    assert asked == MultOptions(rate_bps=RATE_BPS)


def test_auto_without_a_rate_is_nothing() -> None:
    assert Wish(profile=AUTO).socket_tuning("download", 4, RTT_S) == SocketTuning()


def test_explicit_values_win(is_loaded: bool) -> None:
    wish = Wish(
        profile="hts-geo",
        rate_bps=1e6,
        send_buffer_bytes=70_000,
        receive_buffer_bytes=80_000,
        congestion="cubic",
        initial_window_segments=33,
    )
    settings = wish.socket_tuning("download", 2, None)
    unsent = settings.notsent_lowat_bytes
    assert settings == SocketTuning(
        send_buffer_bytes=70_000,
        receive_buffer_bytes=80_000,
        congestion="cubic",
        initial_window_segments=33,
        pacing_rate_bps=500_000,
        notsent_lowat_bytes=unsent,
    )
    assert wish.request("download", 2, None) == MultOptions(
        congestion="cubic",
        initial_window_segments=33,
        rate_bps=1_000_000,
        send_buffer_bytes=70_000,
        receive_buffer_bytes=80_000,
    )


def test_a_profile_tells_an_algorithm_of_ours_its_initial_window(is_loaded: bool) -> None:
    wish = Wish(profile="hts-geo", congestion=OURS)
    window = initial_window_for(PROFILES["hts-geo"].link("download"), 8)
    settings = wish.socket_tuning("download", 8, None)
    assert settings.congestion == OURS
    assert settings.initial_window_segments == (window if is_loaded else None)
    # The other side's kernel may have it even where ours does not.
    assert wish.request("download", 8, None).initial_window_segments == window


def test_a_profile_does_not_ask_the_kernels_own_for_a_window(is_loaded: bool) -> None:
    wish = Wish(profile="hts-geo", congestion="cubic")
    assert wish.socket_tuning("download", 8, None).initial_window_segments is None
    assert wish.request("download", 8, None).initial_window_segments is None


@pytest.mark.parametrize("rate_bps", [1e3, 1e13])
@pytest.mark.parametrize("rtt_s", [None, 1e-6, 3600.0])
@pytest.mark.parametrize("connections", [1, 8, 64, 1000])
@pytest.mark.parametrize("profile", [None, AUTO, "t1-geo", "lan"])
def test_extreme_rates(
    is_loaded: bool, rate_bps: float, rtt_s: float | None, connections: int, profile: str | None
) -> None:
    wish = Wish(profile=profile, rate_bps=rate_bps)
    for direction in ("download", "upload"):
        settings = wish.socket_tuning(direction, connections, rtt_s)
        rate = settings.pacing_rate_bps
        assert rate is not None
        assert MIN_PACING_RATE_BPS <= rate <= MAX_PACING_RATE_BPS
        wish.request(direction, connections, rtt_s)


def test_a_system_that_cannot_tell_its_algorithms(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown() -> tuple[str, ...]:
        raise CongestionError("no such file")

    monkeypatch.setattr(f"{MADE}.congestion.available", unknown)
    assert loaded() == frozenset()
    assert Wish(rate_bps=RATE_BPS).socket_tuning("download", 1, RTT_S).congestion is None


def test_the_table_of_the_profiles() -> None:
    """docs/tuning.md tells what is set, for 4 connections of a download."""
    document = (Path(__file__).parents[2] / "docs" / "tuning.md").read_text(encoding="utf-8")
    for name, profile in PROFILES.items():
        made = profile.tuning(4, "download")
        cells = ["the system's", "the system's", "none"]
        if profile.rated:
            cells = [
                f"{made.send_buffer_bytes:,}",
                f"{made.initial_window_segments}",
                f"{made.pacing_rate_bps:,.0f}",
            ]
        row = " | ".join([name, profile.description, profile.source, *cells])
        assert f"| {row} |" in document.splitlines()


# -- the client ----------------------------------------------------------------------------------


def test_the_client_gives_both_sides(sock: socket.socket) -> None:
    wish = Wish(congestion=KERNELS_OWN, send_buffer_bytes=70_000, rate_bps=8e6)
    own, asked = ClientTuning(wish)("download", 4, None)
    own.apply(sock)
    seen = own.observe(sock)
    assert seen["congestion"] == KERNELS_OWN
    assert seen["send_buffer_bytes"] == 70_000
    assert seen["pacing_rate_bps"] == payload_bps(2_000_000)
    assert asked == MultOptions(
        congestion=KERNELS_OWN, send_buffer_bytes=70_000, rate_bps=8_000_000
    )


def test_what_is_not_granted_is_told_once() -> None:
    notices: list[str] = []
    tuning = ClientTuning(Wish(congestion="nosuch"), notices.append)
    tuning.check()
    for connections in (4, 1):
        tuning("download", connections, RTT_S)
    (notice,) = notices
    assert notice.startswith("congestion: asked for nosuch, got ")
    assert "the kernel has only" in notice


def test_what_is_not_granted_is_refused_if_strict() -> None:
    tuning = ClientTuning(Wish(congestion="nosuch"), strict=True)
    with pytest.raises(TuningRefused, match="asked for nosuch"):
        tuning.check()
    with pytest.raises(TuningRefused, match="asked for nosuch"):
        tuning("download", 4, RTT_S)


def test_what_the_path_asks_for_is_checked_when_it_is_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[SocketTuning] = []

    def refused(probe: ObservedTuner) -> tuple[()]:
        tried.append(probe.tuning)
        return ()

    monkeypatch.setattr(f"{MADE}._refused", refused)
    tuning = ClientTuning(Wish(rate_bps=RATE_BPS, congestion="reno"))
    tuning.check()
    assert tried == [SocketTuning(congestion="reno")]
    tuning("download", 1, RTT_S)
    assert tried[1].receive_buffer_bytes == round(BUFFERS_PER_WINDOW * RATE_BPS / 8 * RTT_S)


@pytest.mark.parametrize("strict", [False, True])
def test_auto_needs_a_rate(strict: bool) -> None:
    notices: list[str] = []
    tuning = ClientTuning(Wish(profile=AUTO), notices.append, strict=strict)
    if strict:
        with pytest.raises(TuningRefused, match="auto needs the rate"):
            tuning.check()
    else:
        tuning.check()
        tuning.check()
        assert notices == ["the profile auto needs the rate of the link, as --rate 50mbit"]


@pytest.mark.parametrize("strict", [False, True])
def test_auto_needs_a_rate_only_where_none_is_remembered(strict: bool) -> None:
    notices: list[str] = []
    tuning = ClientTuning(Wish(profile=AUTO), notices.append, strict=strict, remembers=True)
    tuning.check()
    SupposedTuning(Wish(profile=AUTO), tuning.make, RATE_BPS)("download", 1, RTT_S, "127.0.0.1")
    assert notices == []
    if strict:
        with pytest.raises(TuningRefused, match="none is remembered of this path"):
            tuning("download", 1, RTT_S)
    else:
        tuning("download", 1, RTT_S)
        tuning("upload", 1, RTT_S)
        assert len(notices) == 1
        assert "none is remembered of this path" in notices[0]


def test_a_wish_that_cannot_be_meant_is_refused() -> None:
    tuning = ClientTuning(Wish(profile="mars"))
    with pytest.raises(TuningRefused, match="no profile 'mars'"):
        tuning("download", 1, RTT_S)
    with pytest.raises(TuningRefused, match="send_buffer_bytes is 1"):
        ClientTuning(Wish(send_buffer_bytes=1)).check()


# -- sockets and kernel ---------------------------------------------------------------------------


def test_a_connection_that_is_gone_is_not_observed() -> None:
    closed = socket.socket()
    closed.close()
    assert ObservedTuner(SocketTuning()).observe(closed) == {}


def test_parameters_are_opened_anew_when_algorithms_are_loaded_anew(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    opened: list[object] = []

    def open_map() -> object:
        opened.append(object())
        return opened[-1]

    pin = tmp_path / "parameters"
    monkeypatch.setattr("xftp.cli.observed.host.PARAMETERS_PIN", pin)
    monkeypatch.setattr("xftp.cli.observed.ParameterMap", open_map)
    current = CurrentParameters()
    assert current.get() is None
    pin.touch()
    first = current.get()
    assert first is current.get()
    assert opened == [first]
    pin.rename(tmp_path / "old")
    assert current.get() is first  # unloaded: nothing else to turn to
    pin.touch()
    assert current.get() is opened[1]


def test_observing_leaves_out_what_is_not_known(sock: socket.socket) -> None:
    seen = ObservedTuner(SocketTuning()).observe(sock)
    assert seen["initial_window_segments"] is None
    assert seen["delivery_rate_bps"] is None
