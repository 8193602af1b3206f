"""What a daemon grants: the client's wish, the operator's limits and defaults, and the kernel."""

from __future__ import annotations

import socket
from dataclasses import fields

import pytest

from tests.tuning.support import payload_bps, unprivileged
from tuning import AUTO, SocketTuning
from tuning.sockopts import MIN_BUFFER_BYTES
from xftp.cli.observed import ObservedTuner
from xftp.cli.tuning import RENTED, DaemonTuning, Limits, Wish
from xftp.protocol.options import MULT_KEYS, SOCKET_KEYS, MultOptions

MADE = "xftp.cli.tuning"
KERNELS_OWN = "reno"
"""An algorithm that every process may choose."""


def granting(**limits: object) -> DaemonTuning:
    """Make a daemon's tuning with limits only."""
    return DaemonTuning(Wish(), Limits(**limits))  # type: ignore[arg-type]


def test_the_keys_are_those_of_the_protocol() -> None:
    assert DaemonTuning.keys == tuple(name for name, _ in SOCKET_KEYS)
    assert {field for _, field in MULT_KEYS} == {field.name for field in fields(MultOptions)}


def test_what_is_possible_is_granted() -> None:
    asked = MultOptions(
        congestion=KERNELS_OWN,
        rate_bps=8_000_000,
        send_buffer_bytes=70_000,
        receive_buffer_bytes=80_000,
    )
    assert granting().grant(asked) == asked


def test_nothing_is_granted_to_who_asks_nothing() -> None:
    assert granting().grant(MultOptions(connections=4)) == MultOptions()


@pytest.mark.parametrize(
    ("asked", "granted"),
    [
        (MultOptions(send_buffer_bytes=100_000), MultOptions(send_buffer_bytes=50_000)),
        (MultOptions(receive_buffer_bytes=10**15 - 1), MultOptions(receive_buffer_bytes=50_000)),
        (MultOptions(send_buffer_bytes=50_000), MultOptions(send_buffer_bytes=50_000)),
        (MultOptions(send_buffer_bytes=40_000), MultOptions(send_buffer_bytes=40_000)),
        (MultOptions(congestion="cubic"), MultOptions()),
        (MultOptions(congestion="nosuch"), MultOptions()),
        (MultOptions(congestion=KERNELS_OWN), MultOptions(congestion="reno")),
    ],
)
def test_limits(asked: MultOptions, granted: MultOptions) -> None:
    tuner = granting(buffer_bytes=50_000, algorithms=("reno",), rate_bps=1e6)
    assert tuner.grant(asked) == granted


@pytest.mark.parametrize(
    ("rate_bps", "connections", "granted"),
    [
        (500_000, None, 500_000),
        (2_000_000, None, 1_000_000),
        (2_000_000, 8, 1_000_000),
        (10**15 - 1, 8, 1_000_000),
        (1, None, 1_000),
        (1, 8, 8_000),
        (1, 999_999_999, 64_000),
    ],
)
def test_rates_within_the_limit_and_what_a_socket_can_be_told(
    rate_bps: int, connections: int | None, granted: int
) -> None:
    tuner = granting(algorithms=("reno",), rate_bps=1e6)
    asked = MultOptions(connections=connections, rate_bps=rate_bps)
    assert tuner.grant(asked) == MultOptions(rate_bps=granted)


@pytest.mark.parametrize("value", [1, 999, 2**31, 10**9 - 1, 10**15 - 1])
@pytest.mark.parametrize("name", [field.name for field in fields(MultOptions)][2:])
@pytest.mark.parametrize("connections", [1, 8, 64])
def test_no_value_of_the_wire_is_too_much(
    sock: socket.socket, name: str, value: int, connections: int
) -> None:
    """Whatever can be written is granted or reduced, and can be applied."""
    tuner = granting(algorithms=("reno",))
    granted = tuner.grant(MultOptions(**{name: value}))  # type: ignore[arg-type]
    tuner.tuning(granted, connections).apply(sock)
    has = getattr(granted, name)
    if name.endswith("buffer_bytes"):
        assert has is not None
        assert has >= MIN_BUFFER_BYTES
        assert tuner.tuning(granted, connections).observe(sock)[name] == has


def test_the_initial_window_is_reduced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{MADE}._refused", lambda probe: ())  # as if the kernel gave everything
    tuner = granting(initial_window_segments=30)
    assert tuner.grant(MultOptions(initial_window_segments=40)).initial_window_segments == 30
    assert tuner.grant(MultOptions(initial_window_segments=20)).initial_window_segments == 20


def test_an_initial_window_needs_an_algorithm_that_takes_it() -> None:
    """Not even root has another way to this machine's own addresses."""
    asked = MultOptions(congestion="reno", initial_window_segments=40)
    assert granting().grant(asked, "127.0.0.1") == MultOptions(congestion="reno")


@pytest.mark.parametrize(
    ("limits", "defaults", "chosen"),
    [
        (Limits(), Wish(), RENTED),
        (Limits(algorithms=("reno", RENTED)), Wish(), RENTED),
        (Limits(algorithms=("reno",)), Wish(), None),
        (Limits(), Wish(congestion="reno"), None),
    ],
)
def test_a_rate_chooses_the_algorithm_where_it_is_loaded(
    is_loaded: bool,
    monkeypatch: pytest.MonkeyPatch,
    limits: Limits,
    defaults: Wish,
    chosen: str | None,
) -> None:
    monkeypatch.setattr(f"{MADE}._refused", lambda probe: ())
    tuner = DaemonTuning(defaults, limits)
    assert tuner.grant(MultOptions(rate_bps=10**6)).congestion == (chosen if is_loaded else None)
    asked = MultOptions(rate_bps=10**6, congestion="reno")
    assert tuner.grant(asked).congestion == "reno"
    assert tuner.grant(MultOptions(send_buffer_bytes=70_000)).congestion is None


def test_the_operators_defaults_hold_until_something_else_is_granted(sock: socket.socket) -> None:
    defaults = Wish(congestion="reno", send_buffer_bytes=70_000, rate_bps=8e6)
    tuner = DaemonTuning(defaults, Limits(buffer_bytes=50_000))
    assert tuner.grant(MultOptions()) == MultOptions()
    usual = tuner.tuning(MultOptions(), 4)
    usual.apply(sock)
    seen = usual.observe(sock)
    assert seen["congestion"] == "reno"
    assert seen["send_buffer_bytes"] == 70_000  # the limits are for clients
    assert seen["pacing_rate_bps"] == payload_bps(2_000_000)
    granted = tuner.grant(MultOptions(send_buffer_bytes=60_000, rate_bps=4_000_000))
    other = tuner.tuning(granted, 4)
    with socket.socket() as another:
        other.apply(another)
        seen = other.observe(another)
    assert seen["congestion"] == "reno"
    assert seen["send_buffer_bytes"] == 50_000
    assert seen["pacing_rate_bps"] == payload_bps(1_000_000)


def test_a_default_rate_leaves_the_buffers_to_the_system(sock: socket.socket) -> None:
    """The daemon does not know how far away its clients are."""
    before = ObservedTuner(SocketTuning()).observe(sock)
    usual = DaemonTuning(Wish(rate_bps=8e6), Limits()).tuning(MultOptions(), 4)
    usual.apply(sock)
    assert usual.observe(sock)["receive_buffer_bytes"] == before["receive_buffer_bytes"]
    assert usual.observe(sock)["send_buffer_bytes"] == before["send_buffer_bytes"]


@pytest.mark.parametrize(
    ("defaults", "limits", "sentence"),
    [
        (Wish(congestion="nosuch"), Limits(), "asked for nosuch"),
        (Wish(profile=AUTO), Limits(), "auto needs the rate"),
        (Wish(), Limits(algorithms=("reno", "nosuch")), "no congestion control nosuch to allow"),
        (Wish(congestion="reno", initial_window_segments=40), Limits(), "initial_window_segments"),
    ],
)
def test_the_operator_is_told_what_cannot_be(defaults: Wish, limits: Limits, sentence: str) -> None:
    with unprivileged():
        (problem,) = DaemonTuning(defaults, limits).problems()
    assert sentence in problem


@pytest.mark.parametrize("defaults", [Wish(), Wish(congestion="reno", rate_bps=1e3)])
def test_the_operator_is_not_bothered_otherwise(defaults: Wish) -> None:
    assert DaemonTuning(defaults, Limits(algorithms=("reno",))).problems() == ()
