"""Parameters per socket: told, inherited, kept over idleness, and by whom."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench.emulated_path import Link, long_link
from tuning.congestion import ALGORITHMS, ParameterMap, Parameters, choose, chosen

from .bpf_support import needs_bpf
from .transfers import connected, info_of, observe, transfer

pytestmark = needs_bpf

ROOT = Path(__file__).parents[2]
NOBODY = 65534

WINDOWS = (1, 2, 3, 10, 33, 77, 1000)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_initial_window_is_exact_on_both_sides(
    link: Link, parameter_map: ParameterMap, name: str
) -> None:
    for window in WINDOWS:
        told = Parameters(initial_window_segments=window)

        def tune(sock: socket.socket, told: Parameters = told) -> None:
            choose(sock, name, told, parameter_map)

        with connected(link, client=tune, listener=tune) as (active, passive):
            assert info_of(active).snd_cwnd_segments == window
            assert info_of(passive).snd_cwnd_segments == window


def test_first_flight_is_the_initial_window(link: Link, parameter_map: ParameterMap) -> None:
    told = Parameters(initial_window_segments=33)
    seen = transfer(
        link, "xftp_reno97", told, parameter_map, until=lambda at, info: seen_acks(info)
    )
    flights = {info.unacked_segments for _, info in seen.samples if not seen.acks(info)}
    assert max(flights) == 33


def seen_acks(info: object) -> bool:
    delivered = getattr(info, "delivered_segments", None)
    assert delivered is not None
    return bool(delivered > 1)


def test_accepted_sockets_inherit_algorithm_and_parameters(
    link: Link, parameter_map: ParameterMap
) -> None:
    of_listener = Parameters(initial_window_segments=77, k=4)
    of_client = Parameters(initial_window_segments=33)
    with connected(
        link,
        client=lambda sock: choose(sock, "xftp_reno97", of_client, parameter_map),
        listener=lambda sock: choose(sock, "xftp_kack", of_listener, parameter_map),
    ) as (active, passive):
        assert (chosen(active), chosen(passive)) == ("xftp_reno97", "xftp_kack")
        assert parameter_map.get(active) == of_client
        assert parameter_map.get(passive) == of_listener
        assert info_of(active).snd_cwnd_segments == 33
        assert info_of(passive).snd_cwnd_segments == 77
        # A download: the accepted side sends, with the listener's K.
        seen = observe(passive, active, size_bytes=1 << 20)
        assert max(info.snd_cwnd_segments for _, info in seen.samples) > 77 * 3


def test_an_idle_connection_keeps_its_initial_window(parameter_map: ParameterMap) -> None:
    """The kernel would take it back to ten segments after a time-out's worth of silence."""
    told = Parameters(initial_window_segments=40)
    with (
        long_link(0.02) as link,
        connected(link, client=lambda sock: choose(sock, "xftp_abc", told, parameter_map)) as (
            active,
            passive,
        ),
    ):
        time.sleep(4 * info_of(active).rto_s)
        seen = observe(active, passive, size_bytes=1 << 18)
    flights = [info.unacked_segments for _, info in seen.samples if not seen.acks(info)]
    assert max(flights) == 40


def test_threshold_from_rate_and_round_trip(link: Link, parameter_map: ParameterMap) -> None:
    """Allman 2.4.5: slow start ends where rate x RTT is in flight."""
    told = Parameters(rate_bps=10e6, ssthresh_from_rate=True)
    seen = transfer(link, "xftp_reno97", told, parameter_map, until=lambda at, info: at > 1.3)
    threshold = seen.first.snd_ssthresh_segments
    assert threshold is not None
    on_link = seen.first.snd_mss_bytes + 52
    assert threshold == pytest.approx(10e6 / 8 * seen.first.rtt_s / on_link, abs=1)
    # Reached after seven round trips, and then one segment per round trip.
    assert threshold <= seen.last.snd_cwnd_segments <= threshold + 8


def test_parameters_may_be_read_back_and_taken_away(parameter_map: ParameterMap) -> None:
    told = Parameters(
        initial_window_segments=4,
        ssthresh_segments=100,
        k=3,
        thr_segments=20,
        c=64,
        reference_rtt_s=0.025,
        rate_bps=50e6,
        ssthresh_from_rate=True,
    )
    with socket.socket() as sock:
        assert parameter_map.get(sock) is None
        parameter_map.set(sock, told)
        assert parameter_map.get(sock) == told
        parameter_map.forget(sock)
        parameter_map.forget(sock)
        assert parameter_map.get(sock) is None


def test_the_setters_of_a_socket_tuning_add_to_each_other(parameter_map: ParameterMap) -> None:
    with socket.socket() as sock:
        choose(sock, "xftp_kack")
        parameter_map.set_parameters(sock, "xftp_kack", (("k", 4.0), ("rate_bps", 2e6)))
        parameter_map.set_initial_window(sock, 6)
        assert parameter_map.get(sock) == Parameters(k=4, rate_bps=2e6, initial_window_segments=6)


def as_nobody(code: str, *, as_root: str = "") -> str:
    """Run Python as an ordinary user, after some as root; give what it prints.

    The interpreter may lie where only root can start it: so privileges are dropped by the process.
    """
    script = f"""
import os, socket
from tuning.congestion import ParameterMap, Parameters, choose, chosen
{as_root}
os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})
sock = socket.socket()
{code}
sock.close()
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.usefixtures("loaded_algorithms")
def test_an_ordinary_user_may_choose() -> None:
    code = f"""
for name in {tuple(ALGORITHMS)!r}:
    choose(sock, name)
    assert chosen(sock) == name
print(os.getuid())
"""
    assert as_nobody(code) == f"{NOBODY}"


@pytest.mark.usefixtures("loaded_algorithms")
def test_a_map_opened_as_root_works_after_dropping_root() -> None:
    code = """
choose(sock, "xftp_abc", Parameters(initial_window_segments=12), opened)
print(os.getuid(), opened.get(sock).initial_window_segments)
opened.close()
"""
    assert as_nobody(code, as_root="opened = ParameterMap()") == f"{NOBODY} 12"


@pytest.mark.usefixtures("loaded_algorithms")
def test_an_ordinary_user_may_set_parameters_where_he_can_reach_the_map() -> None:
    if os.stat("/sys/fs/bpf").st_mode & 0o001 == 0:
        pytest.skip("/sys/fs/bpf is closed to ordinary users here, as systemd mounts it")
    code = """
with ParameterMap() as opened:
    choose(sock, "xftp_abc", Parameters(initial_window_segments=12), opened)
    print(opened.get(sock).initial_window_segments)
"""
    assert as_nobody(code) == "12"
