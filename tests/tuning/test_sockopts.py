"""SocketTuning: what it takes, what it sets on real sockets, and what it says was refused."""

from __future__ import annotations

import dataclasses
import socket
from typing import Any

import pytest

from tuning import readback
from tuning.errors import TuningError
from tuning.sockopts import (
    MAX_BUFFER_BYTES,
    Difference,
    Keepalive,
    Parameters,
    SocketTuning,
    Tuner,
    granted,
)

from .support import (
    available_algorithms,
    ceiling,
    connected,
    needs_net_admin,
    payload_bps,
    unprivileged,
)

EVERYTHING = SocketTuning(
    send_buffer_bytes=100_000,
    receive_buffer_bytes=120_000,
    congestion="reno",
    pacing_rate_bps=8e6,
    notsent_lowat_bytes=20_000,
    window_clamp_bytes=50_000,
    max_segment_bytes=1000,
    user_timeout_ms=30_000,
    keepalive=Keepalive(60, 10, 5),
    quick_ack=True,
    fast_open=False,
)
"""Nothing in it needs privilege on an ordinary host."""


# -- values -----------------------------------------------------------------------------------


def test_by_default_everything_is_left_alone() -> None:
    nothing = SocketTuning()
    assert not any(getattr(nothing, field.name) for field in dataclasses.fields(nothing))
    with socket.socket() as sock, socket.socket() as untouched:
        assert nothing.apply(sock) == ()
        assert granted(sock) == granted(untouched)


def test_a_tuning_is_a_value() -> None:
    assert SocketTuning(user_timeout_ms=5) == SocketTuning(user_timeout_ms=5)
    assert len({SocketTuning(user_timeout_ms=5), SocketTuning(user_timeout_ms=5)}) == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        SocketTuning().congestion = "reno"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("send_buffer_bytes", 0),
        ("send_buffer_bytes", -1),
        ("send_buffer_bytes", 10**12),
        ("receive_buffer_bytes", 0),
        ("receive_buffer_bytes", "4MB"),
        ("receive_buffer_bytes", 65536.0),
        ("receive_buffer_bytes", True),
        ("receive_buffer_bytes", MAX_BUFFER_BYTES + 1),
        ("initial_window_segments", 0),
        ("initial_window_segments", -3),
        ("initial_window_segments", 1001),
        ("initial_window_segments", 10_000),
        ("pacing_rate_bps", 0),
        ("pacing_rate_bps", -1.0),
        ("pacing_rate_bps", float("nan")),
        ("pacing_rate_bps", float("inf")),
        ("pacing_rate_bps", "50mbit"),
        ("pacing_rate_bps", 1e14),
        ("notsent_lowat_bytes", 0),
        ("window_clamp_bytes", 1000),
        ("max_segment_bytes", 87),
        ("max_segment_bytes", 65535),
        ("user_timeout_ms", 0),
        ("user_timeout_ms", 2**31),
        ("keepalive", Keepalive(0, 10, 5)),
        ("keepalive", Keepalive(60, 40_000, 5)),
        ("keepalive", Keepalive(60, 10, 128)),
        ("congestion", ""),
        ("congestion", "sixteen_letters_"),
        ("congestion", "no spaces"),
        ("congestion", "naïve"),
        ("congestion", "reno\0"),
        ("congestion", "reno\n"),
    ],
)
def test_refused_value(name: str, value: Any) -> None:
    with pytest.raises(TuningError) as refusal:
        SocketTuning(**{name: value})
    assert repr(value) in str(refusal.value) or name in str(refusal.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("send_buffer_bytes", 2304),
        ("receive_buffer_bytes", MAX_BUFFER_BYTES),
        ("initial_window_segments", 1),
        ("initial_window_segments", 1000),
        ("pacing_rate_bps", 1000),
        ("pacing_rate_bps", 100e9),
        ("max_segment_bytes", 88),
        ("congestion", "fifteen_letters"),
    ],
)
def test_value_at_the_edge(name: str, value: Any) -> None:
    assert getattr(SocketTuning(**{name: value}), name) == value


def test_the_refusal_says_what_is_allowed() -> None:
    with pytest.raises(TuningError) as refusal:
        SocketTuning(initial_window_segments=0)
    expected = "initial_window_segments is 0: give a whole number of segments from 1 to 1,000"
    assert str(refusal.value) == expected


@pytest.mark.parametrize(
    "arguments",
    [
        {"congestion_parameters": (("k", 2),)},
        {"congestion": "reno", "congestion_parameters": (("k", 2), ("k", 3))},
        {"congestion": "reno", "congestion_parameters": (("k", float("nan")),)},
        {"congestion": "reno", "congestion_parameters": (("k", "2"),)},
    ],
)
def test_refused_parameters(arguments: dict[str, Any]) -> None:
    with pytest.raises(TuningError):
        SocketTuning(**arguments)


def test_merged() -> None:
    profile = SocketTuning(
        send_buffer_bytes=50_000, congestion="reno", congestion_parameters=(("k", 2),)
    )
    typed = SocketTuning(send_buffer_bytes=60_000, fast_open=False)
    assert profile.merged(SocketTuning()) == profile
    assert profile.merged(typed) == dataclasses.replace(
        profile, send_buffer_bytes=60_000, fast_open=False
    )
    other = profile.merged(SocketTuning(congestion="cubic"))
    assert (other.congestion, other.congestion_parameters) == ("cubic", ())
    same = profile.merged(SocketTuning(congestion="reno"))
    assert same.congestion_parameters == (("k", 2),)


# -- setting ----------------------------------------------------------------------------------


def test_everything_is_granted_and_read_back() -> None:
    with unprivileged(), socket.socket() as sock:
        assert EVERYTHING.apply(sock) == ()
        got = granted(sock)
    for name, has in got._asdict().items():
        asked = getattr(EVERYTHING, name)
        if name == "pacing_rate_bps":
            asked = payload_bps(asked)
        assert has == asked, name


def test_buffers_are_what_was_asked_not_what_is_read() -> None:
    with socket.socket() as sock:
        SocketTuning(send_buffer_bytes=100_000, receive_buffer_bytes=120_000).apply(sock)
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) == 200_000
        assert granted(sock).send_buffer_bytes == 100_000
        assert granted(sock).receive_buffer_bytes == 120_000


@pytest.mark.parametrize("rate_bps", [1000, 50e6, 3.3e10, 1e13])
def test_pacing_rate_has_64_bits(rate_bps: float) -> None:
    with socket.socket() as sock:
        assert SocketTuning(pacing_rate_bps=rate_bps).apply(sock) == ()
        assert granted(sock).pacing_rate_bps == payload_bps(rate_bps)


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_both_families(family: socket.AddressFamily) -> None:
    with unprivileged(), socket.socket(family) as sock:
        assert EVERYTHING.apply(sock) == ()


def test_accepted_sockets_inherit_from_the_listener() -> None:
    with connected(EVERYTHING, EVERYTHING) as pair:
        for sock in (pair.listener, pair.client, pair.server):
            assert EVERYTHING.differences(sock) == ()
        got = granted(pair.server)
        assert got.congestion == "reno"
        assert got.pacing_rate_bps == payload_bps(8e6)
        assert got.keepalive == Keepalive(60, 10, 5)
        assert got.send_buffer_bytes == 100_000
        # 1000 less the timestamps option.
        assert got.max_segment_bytes == 988


def test_quick_ack_and_fast_open_can_be_switched_off() -> None:
    with socket.socket() as sock:
        assert SocketTuning(quick_ack=False, fast_open=False).apply(sock) == ()
        assert granted(sock).quick_ack is False
        assert granted(sock).fast_open is False


def test_a_buffer_past_the_ceiling_with_privilege() -> None:
    needs_net_admin()
    wanted = ceiling("wmem_max") * 4
    with socket.socket() as sock:
        assert SocketTuning(send_buffer_bytes=wanted, receive_buffer_bytes=wanted).apply(sock) == ()
        assert granted(sock).send_buffer_bytes == wanted


@pytest.mark.parametrize(
    ("option", "sysctl"),
    [("send_buffer_bytes", "wmem_max"), ("receive_buffer_bytes", "rmem_max")],
)
def test_a_buffer_past_the_ceiling_without_privilege(option: str, sysctl: str) -> None:
    top = ceiling(sysctl)
    values: dict[str, Any] = {option: top * 4}
    tuning = SocketTuning(**values)
    with unprivileged(), socket.socket() as sock:
        (difference,) = tuning.apply(sock)
        assert tuning.differences(sock) == (difference,)
    command = f"sysctl -w net.core.{sysctl}={top * 4}"
    assert difference == Difference(option, top * 4, top, f"net.core.{sysctl} is {top}: {command}")
    assert str(difference).startswith(f"{option}: asked for {top * 4}, got {top}: net.core.")


def test_an_unknown_algorithm() -> None:
    tuning = SocketTuning(congestion="xftp_nosuch", user_timeout_ms=1000)
    with unprivileged(), socket.socket() as sock:
        before = granted(sock).congestion
        (difference,) = tuning.apply(sock)
        assert (difference.option, difference.granted) == ("congestion", before)
        assert "python -m tuning load" in difference.reason
        assert "reno" in difference.reason
        assert granted(sock).user_timeout_ms == 1000, "the other wishes are granted still"


def test_an_algorithm_that_only_root_may_choose() -> None:
    with open("/proc/sys/net/ipv4/tcp_allowed_congestion_control") as file:
        closed = set(available_algorithms()) - set(file.read().split())
    if not closed:
        pytest.skip("every algorithm here is open to everybody")
    name = min(closed)
    with unprivileged(), socket.socket() as sock:
        (difference,) = SocketTuning(congestion=name).apply(sock)
    assert difference.asked == name
    assert "sysctl -w net.ipv4.tcp_allowed_congestion_control=" in difference.reason
    assert f'{name}"' in difference.reason


def test_every_available_algorithm_is_granted_with_privilege() -> None:
    needs_net_admin()
    for name in available_algorithms():
        with socket.socket() as sock:
            assert SocketTuning(congestion=name).apply(sock) == ()
            assert granted(sock).congestion == name


def test_fast_open_follows_the_system() -> None:
    modes = int(readback.sysctl("net.ipv4.tcp_fastopen") or 0)
    tuning = SocketTuning(fast_open=True)
    with socket.socket() as sock:
        differences = tuning.apply(sock)
        assert bool(differences) == (not modes & 1)
        sock.bind(("127.0.0.1", 0))
        sock.listen()
        listening = tuning.differences(sock)
    assert bool(listening) == (not modes & 2)
    for difference in (*differences, *listening):
        assert "sysctl -w net.ipv4.tcp_fastopen=3" in difference.reason


@pytest.mark.parametrize("wanted", [True, False])
def test_fast_open_of_a_listener(wanted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readback, "_fast_open_modes", lambda: 3)
    with socket.socket() as sock:
        SocketTuning(fast_open=wanted).apply(sock)
        sock.bind(("127.0.0.1", 0))
        sock.listen()
        assert granted(sock).fast_open is wanted


def test_a_closed_socket_is_the_callers_error() -> None:
    sock = socket.socket()
    sock.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        EVERYTHING.apply(sock)
    with pytest.raises(OSError, match="Bad file descriptor"):
        SocketTuning(send_buffer_bytes=5000).apply(sock)


def test_a_kernel_without_an_option_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readback, "SO_MAX_PACING_RATE", 9999)
    monkeypatch.setattr(readback, "_pacing_rate", lambda sock: None)
    with socket.socket() as sock:
        (difference,) = SocketTuning(pacing_rate_bps=8e6).apply(sock)
    assert difference == Difference(
        "pacing_rate_bps", 8e6, None, "the kernel refuses: Protocol not available"
    )
    assert "was refused" in str(difference)


def test_elsewhere_only_what_every_system_has_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readback, "LINUX", False)
    with socket.socket() as sock:
        differences = EVERYTHING.apply(sock)
        got = granted(sock)
    assert got.send_buffer_bytes == 100_000
    assert got.keepalive == Keepalive(60, 10, 5)
    assert got.max_segment_bytes == 1000
    assert {d.option: d.reason for d in differences} == dict.fromkeys(
        (
            "congestion",
            "pacing_rate_bps",
            "notsent_lowat_bytes",
            "window_clamp_bytes",
            "user_timeout_ms",
            "quick_ack",
            "fast_open",
        ),
        "only Linux has this option",
    )


# -- the initial window and parameters --------------------------------------------------------


def test_the_initial_window_needs_somebody_to_set_it() -> None:
    tuning = SocketTuning(initial_window_segments=32)
    with socket.socket() as sock:
        (difference,) = tuning.apply(sock)
    assert (difference.option, difference.asked) == ("initial_window_segments", 32)
    assert "python -m tuning load" in difference.reason


def test_the_initial_window_is_checked_once_connected() -> None:
    tuning = SocketTuning(initial_window_segments=33, congestion="reno")
    calls: list[int] = []
    with socket.socket() as listener, socket.socket() as client:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        assert tuning.apply(client, set_initial_window=lambda s, n: calls.append(n)) == ()
        client.connect(listener.getsockname())
        (difference,) = tuning.differences(client)
        as_it_is = granted(client).initial_window_segments
        assert as_it_is is not None
        assert difference.granted == as_it_is
        right = SocketTuning(initial_window_segments=as_it_is, congestion="reno")
        assert right.differences(client) == ()
        client.send(b"x")
        server, _ = listener.accept()
        with server:
            assert server.recv(1) == b"x"
            server.send(b"y")
            assert client.recv(1) == b"y"
            assert granted(client).initial_window_segments is None, "it has grown since"
            assert tuning.differences(client) == ()
    assert calls == [33]


def test_the_algorithm_is_chosen_first_then_its_parameters_then_the_window() -> None:
    seen: list[tuple[str, object]] = []

    def parameters(sock: socket.socket, congestion: str, values: Parameters) -> None:
        seen.append(("parameters", (granted(sock).congestion, congestion, values)))

    def window(sock: socket.socket, segments: int) -> None:
        seen.append(("window", segments))

    tuning = SocketTuning(
        congestion="reno", congestion_parameters=(("k", 2),), initial_window_segments=5
    )
    with socket.socket() as sock:
        assert tuning.apply(sock, set_parameters=parameters, set_initial_window=window) == ()
    assert seen == [("parameters", ("reno", "reno", (("k", 2),))), ("window", 5)]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (TuningError("no map"), "no map"),
        (OSError("something else"), "something else"),
        (PermissionError(1, "Operation not permitted"), "Operation not permitted"),
    ],
)
def test_a_setter_that_fails_is_reported(error: Exception, reason: str) -> None:
    def fail(sock: socket.socket, segments: int) -> None:
        raise error

    with socket.socket() as sock:
        (difference,) = SocketTuning(initial_window_segments=5).apply(sock, set_initial_window=fail)
    assert reason in difference.reason


def test_parameters_without_anybody_to_set_them() -> None:
    tuning = SocketTuning(congestion="reno", congestion_parameters=(("k", 2),))
    with socket.socket() as sock:
        (difference,) = tuning.apply(sock)
    assert difference.option == "congestion_parameters"


def test_parameters_are_not_given_to_another_algorithm() -> None:
    tuning = SocketTuning(congestion="nosuch", congestion_parameters=(("k", 2),))
    with socket.socket() as sock:
        refused = tuning.apply(sock, set_parameters=lambda *_: pytest.fail("called"))
    assert [d.option for d in refused] == ["congestion", "congestion_parameters"]
    assert refused[1].reason == "nosuch was refused"


# -- many sockets -----------------------------------------------------------------------------


def test_a_tuner_remembers_what_was_refused_once() -> None:
    tuner = Tuner(SocketTuning(congestion="nosuch", user_timeout_ms=1000))
    assert tuner.differences == ()
    for _ in range(3):
        with socket.socket() as sock:
            tuner.apply(sock)
            assert granted(sock).user_timeout_ms == 1000
            tuner.check(sock)
    (difference,) = tuner.differences
    assert difference.option == "congestion"
    assert "python -m tuning" in difference.reason or "modprobe" in difference.reason


def test_a_tuner_passes_the_setters_on() -> None:
    seen: list[object] = []
    tuner = Tuner(
        SocketTuning(
            congestion="reno", congestion_parameters=(("k", 2),), initial_window_segments=5
        ),
        set_parameters=lambda sock, name, values: seen.append(values),
        set_initial_window=lambda sock, segments: seen.append(segments),
    )
    with socket.socket() as sock:
        tuner.apply(sock)
    assert seen == [(("k", 2),), 5]
    assert tuner.differences == ()
