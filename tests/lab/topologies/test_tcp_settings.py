"""Old TCP, seen on real connections."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mininet_topos.errors import TopologyError
from mininet_topos.network import Lab
from mininet_topos.tcp_settings import TcpSettings, nineties
from mininet_topos.topologies import topos
from tests.lab.topologies.support import connected, exactly, lab_names, needs_lab
from tuning.tcp_info import TcpInfo, TcpOption, tcp_info

RTT_S = 0.1


@pytest.fixture
def allowed() -> Iterator[None]:
    """Check that the host's list of algorithms is as before."""
    path = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
    before = path.read_text()
    yield
    assert path.read_text() == before


def running(**settings: Any) -> Lab:
    """Give a lab on which a connection's window doubles every 0.1 s."""
    return Lab(topos["hts_geo"](rtt_s=RTT_S), **settings)


@contextlib.contextmanager
def joined(**settings: Any) -> Iterator[tuple[socket.socket, socket.socket]]:
    """Give a connection in such a lab: the receiver's end, the sender's."""
    with running(**settings) as lab, connected(lab.host("client"), lab.host("server")) as ends:
        yield ends


def info(sock: socket.socket) -> TcpInfo:
    told = tcp_info(sock)
    assert told is not None
    return told


def most_in_flight(sender: socket.socket, receiver: socket.socket, size_bytes: int) -> int:
    """Send some data, and give the most bytes that were on the way at once."""
    sender.setblocking(False)
    left = size_bytes
    received = most = 0
    receiver.settimeout(0.002)
    while received < size_bytes:
        if left:
            with contextlib.suppress(BlockingIOError):
                left -= sender.send(bytes(left))
        with contextlib.suppress(TimeoutError):
            received += len(receiver.recv(65536))
        told = info(sender)
        assert told.bytes_sent is not None and told.bytes_acked is not None
        most = max(most, told.bytes_sent - told.bytes_acked)
    return most


@pytest.mark.usefixtures("allowed")
class TestNineties:
    pytestmark = needs_lab

    def test_newreno_without_sack_sends_small_segments_from_a_window_of_one(self) -> None:
        settings = nineties(sack=False, window_bytes=24 * 1024)
        with running(tcp=settings) as lab:
            server, client = lab.host("server"), lab.host("client")
            with connected(client, server) as (receiving, sending):
                began = info(sending)
                most = most_in_flight(sending, receiving, 100_000)
                ended = info(sending)
                shown = server.run(["ss", "-tinO", "state", "established"], timeout=20).stdout
        assert began.snd_cwnd_segments == 1
        assert began.snd_mss_bytes == 512
        assert not began.options & (TcpOption.SACK | TcpOption.TIMESTAMPS)
        assert began.rto_s >= 1.0
        assert most <= 24 * 1024
        assert ended.snd_wnd_bytes is None or ended.snd_wnd_bytes <= 24 * 1024
        assert " reno " in shown and "mss:512" in shown and " sack" not in shown

    @pytest.mark.parametrize("window_bytes", [24 * 1024, 192 * 1024])
    def test_the_window_is_the_limit_and_no_smaller_one(self, window_bytes: int) -> None:
        """Below 64 KB and, scaled, above."""
        tcp = nineties(sack=True, window_bytes=window_bytes, initial_window_segments=10)
        with joined(tcp=tcp) as (receiving, sending):
            assert info(sending).options & TcpOption.SACK
            most = most_in_flight(sending, receiving, 100_000 + 2 * window_bytes)
        assert 0.97 * window_bytes < most <= window_bytes

    def test_a_host_can_have_settings_of_its_own(self) -> None:
        settings = {"server": TcpSettings(initial_window_segments=3, timestamps=True)}
        with joined(tcp=nineties(sack=True), host_tcp=settings) as (receiving, sending):
            assert info(sending).snd_cwnd_segments == 3
            assert info(receiving).snd_cwnd_segments == 1

    @pytest.mark.parametrize(("quick", "most", "least"), [(True, 2.0, 0.8), (None, 0.75, 0.1)])
    def test_acks_come_for_every_segment_or_are_delayed(
        self, quick: bool | None, most: float, least: float
    ) -> None:
        size_bytes = 200_000
        with running(tcp=nineties(sack=True, quick_ack=quick)) as lab:
            with connected(lab.host("client"), lab.host("server")) as (receiving, sending):
                sending.sendall(bytes(size_bytes))
                exactly(receiving, size_bytes)
            counted = lab.links["satellite"].counters()
        assert counted.forward.losses == counted.forward.queue_drops == 0
        assert least <= counted.backward.packets_in / counted.forward.packets_in <= most

    def test_an_algorithm_only_root_may_choose_can_be_the_default(self) -> None:
        """cubic is built in; whether everyone may choose it is the host's to say."""
        with joined(tcp=TcpSettings(congestion_control="cubic")) as ends:
            chosen = {end.getsockopt(socket.IPPROTO_TCP, 13, 16) for end in ends}
        assert {name.rstrip(b"\0") for name in chosen} == {b"cubic"}  # 13: TCP_CONGESTION

    @pytest.mark.parametrize(
        ("settings", "sentence"),
        [
            (TcpSettings(congestion_control="nosuch"), "the kernel has no nosuch, only "),
            (TcpSettings(ecn=99), "net.ipv4.tcp_ecn cannot be '99': Invalid argument"),
        ],
    )
    def test_what_the_kernel_does_not_take_is_an_error_and_leaves_nothing(
        self, settings: TcpSettings, sentence: str
    ) -> None:
        lab = running(tcp=settings)
        with pytest.raises(TopologyError, match=sentence):
            lab.start()
        assert lab.keeper_pid is None
        assert lab.name not in lab_names()


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"initial_window_segments": 0}, "initial_window_segments is 0"),
        ({"mss_bytes": 20}, "segments of 20 bytes"),
        ({"window_bytes": 9000, "moderate_rcvbuf": True}, "grows by itself"),
        ({"window_bytes": 0}, "no window of 0 bytes"),
        ({"window_bytes": 1 << 31}, "no window of 2147483648 bytes"),
        ({"rto_min_s": 0}, "at least 0 s"),
        ({"receive_buffer_bytes": (1, 3, 2)}, "least, default, greatest"),
    ],
)
def test_impossible_settings_are_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(TopologyError, match=sentence):
        TcpSettings(**settings)


def test_what_is_left_alone_is_not_set() -> None:
    assert TcpSettings().sysctls() == {}
    assert TcpSettings().route_metrics() == {}
    assert TcpSettings().deviations() == ()
    assert TcpSettings(sack=False).to_json() == {"sack": False}


def test_deviations_depend_on_the_stack_and_the_kernel() -> None:
    sack, reno = nineties(sack=True), nineties(sack=False, notes=("and one more",))
    assert any("RACK" in one for one in sack.deviations("6.18.44-fc"))
    assert not any("RACK" in one for one in sack.deviations("6.1.0-13-amd64"))
    assert not any("RACK" in one for one in reno.deviations("6.18"))
    assert any("NewReno" in one for one in reno.deviations("6.18"))
    assert reno.deviations()[-1] == "and one more"
