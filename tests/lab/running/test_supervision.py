"""When flows are started, waited for and given up; and how links are made for a scenario."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from mininet_topos.emulator.counters import LinkCounters, WayCounters
from mininet_topos.errors import ExperimentError
from mininet_topos.experiments.flows import Bulk, Sockets
from mininet_topos.experiments.spec import Scenario
from mininet_topos.link_presets import hts_geo, leo
from mininet_topos.running.lateness import Minds, hosts_kept_up, kept_up, worst
from mininet_topos.running.scenario import _supervise, link_spec, senders_mind
from mininet_topos.tcp_settings import TcpSettings


class Fake:
    """A program that is done a time after it began."""

    def __init__(self, name: str, lasts_s: float, *, start_s: float = 0, background: bool = False):
        self.flow = SimpleNamespace(name=name, start_s=start_s, background=background)
        self.lasts_s = lasts_s
        self.began_s: float | None = None

    def begin(self) -> None:
        self.began_s = time.monotonic()

    def done(self) -> bool:
        assert self.began_s is not None
        return time.monotonic() - self.began_s >= self.lasts_s


def supervise(*programs: Any, limit_s: float = 20) -> float:
    began_s = time.monotonic()
    _supervise(programs, began_s, limit_s)
    return time.monotonic() - began_s


def test_all_in_the_foreground_are_waited_for() -> None:
    first, second = Fake("a", 0.1), Fake("b", 0.05, start_s=0.15)
    assert supervise(first, second) >= 0.2
    assert first.began_s is not None and second.began_s is not None
    assert second.began_s - first.began_s >= 0.15


def test_those_in_the_background_are_not() -> None:
    endless = Fake("web", 1e9, background=True)
    supervise(endless, Fake("a", 0.05))
    assert endless.began_s is not None


def test_one_that_takes_too_long_is_given_up() -> None:
    with pytest.raises(ExperimentError, match="not done after 0 s: slow"):
        supervise(Fake("slow", 1e9), limit_s=0.05)


def scenario(**more: Any) -> Scenario:
    return Scenario(topology="leo", flows=(Bulk(name="b", size_bytes=1),), seconds=1, **more)


def test_acknowledgments_are_left_out_on_the_way_back_only() -> None:
    spec = link_spec(hts_geo(), scenario(delayed_acks=True))
    assert (spec.forward.delayed_acks, spec.backward.delayed_acks) == (False, True)
    assert link_spec(hts_geo(), scenario()) == hts_geo()


def counters(unread_s: float = 0.0, **more: Any) -> LinkCounters:
    names = WayCounters.__dataclass_fields__
    way = WayCounters(**{name: 0 for name in names} | more)
    calm = WayCounters(**{name: 0 for name in names})
    return LinkCounters(0.0, 1.0, calm, way, unread_s, 0.0, "normal")


@pytest.mark.parametrize(
    ("spec", "late", "good"),
    [
        (hts_geo(), {}, True),
        (hts_geo(), {"most_lateness_s": 0.0159}, True),  # an eighth of 600 ms is more than 16
        (hts_geo(), {"most_lateness_s": 0.0161}, False),
        (leo(), {"most_lateness_s": 0.0049}, True),  # of 40 ms: 5
        (leo(), {"most_lateness_s": 0.0051}, False),
        (hts_geo(), {"mean_lateness_s": 0.0006}, False),
        (hts_geo(), {"device_drops": 1}, False),
        (hts_geo(), {"late_packets": 100, "packets_out": 2000}, True),
        (hts_geo(), {"late_packets": 101, "packets_out": 2000}, False),
        (hts_geo(), {"late_packets": 10, "packets_out": 200}, True),  # few in any case
        (hts_geo(), {"late_packets": 11, "packets_out": 200}, False),
        (hts_geo(), {"unread_s": 0.0159}, True),
        (hts_geo(), {"unread_s": 0.0161}, False),
    ],
)
def test_lateness_is_judged_by_the_round_trip_time(
    spec: Any, late: dict[str, float], good: bool
) -> None:
    assert kept_up(spec, counters(**late)) is good


@pytest.mark.parametrize(
    ("spec", "minds", "limit_s"),
    [
        (hts_geo(), "losses", 0.12),  # a fifth of 600 ms
        (hts_geo(), "rates", 0.12),
        (leo(), "losses", 0.1),  # half a time-out
        (leo(), "rates", 0.008),
    ],
)
def test_where_no_sender_minds_delays_a_pause_may_be_longer(
    spec: Any, minds: Minds, limit_s: float
) -> None:
    assert not kept_up(spec, counters(most_lateness_s=0.99 * limit_s))
    assert kept_up(spec, counters(most_lateness_s=0.99 * limit_s), minds=minds)
    assert not kept_up(spec, counters(most_lateness_s=1.01 * limit_s), minds=minds)


@pytest.mark.parametrize(
    ("algorithms", "minds"),
    [
        (("xftp_reno97",), "losses"),
        (("xftp_reno97", "xftp_crate"), "losses"),
        (("xftp_reno97", "bbr"), "rates"),
        (("xftp_reno97", "cubic"), "delays"),
        (("xftp_rented",), "rates"),
        (("xftp_rented", "cubic"), "delays"),
        (("",), "delays"),
    ],
)
def test_what_senders_mind_is_known_by_their_algorithms(
    algorithms: tuple[str, ...], minds: Minds
) -> None:
    flows = tuple(
        Bulk(name=f"b{number}", size_bytes=1, sockets=Sockets(congestion=name))
        for number, name in enumerate(algorithms)
    )
    assert senders_mind(Scenario(topology="leo", flows=flows, seconds=1)) == minds


@pytest.mark.parametrize(
    ("usual", "rate_bps", "minds"),
    [
        ("reno", None, "losses"),
        ("bbr", None, "rates"),
        ("cubic", None, "delays"),
        ("cubic", 1e6, "rates"),
    ],
)
def test_a_host_has_its_usual_algorithm(usual: str, rate_bps: float | None, minds: Minds) -> None:
    flow = Bulk(name="b", size_bytes=1, sockets=Sockets(rate_bps=rate_bps))
    tcp = TcpSettings(congestion_control=usual)
    assert senders_mind(Scenario(topology="leo", flows=(flow,), seconds=1, tcp=tcp)) == minds


def test_lateness_is_judged_by_the_path_where_that_is_longer() -> None:
    late = counters(most_lateness_s=0.014)
    assert not kept_up(leo(), late)
    assert kept_up(leo(), late, path_rtt_s=0.12)  # an eighth of it are 15 ms
    assert not kept_up(leo(), late, path_rtt_s=0.1)


@pytest.mark.parametrize(
    ("late_s", "path_rtt_s", "good"),
    [(0.29, 0.0, True), (0.31, 0.0, False), (0.31, 0.7, True)],
)
def test_hosts_may_be_late_by_half_a_round_trip(
    late_s: float, path_rtt_s: float, good: bool
) -> None:
    assert hosts_kept_up(late_s, [leo(), hts_geo()], path_rtt_s) is good  # 40 and 600 ms


def test_hosts_on_short_paths_may_be_late_by_what_no_machine_is_free_of() -> None:
    assert hosts_kept_up(0.09, [leo()])
    assert not hosts_kept_up(0.11, [leo()])
    assert hosts_kept_up(0.09, [])


def test_lateness_is_told_in_words() -> None:
    names = ("most_lateness_s", "mean_lateness_s", "device_drops", "late_packets", "packets_out")
    late = dict(zip(names, (0.0312, 0.0006, 2, 7, 900), strict=True))
    calm = dict(zip(names, (0.0, 0.0, 0, 0, 100), strict=True))
    told = worst({"satellite": {"forward": calm, "backward": late}}, 0.25)
    assert told == (
        "packets up to 31.2 ms late, 0.60 ms on the average, 7 of 1000 by more than 1 ms, "
        "2 unread; 95% of the hosts' samples up to 250 ms"
    )
    assert worst({}).startswith("packets up to 0.0 ms")
