"""The emulator's process and its handle: start, questions, end, and nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mininet_topos.emulator.capture import read_capture
from mininet_topos.emulator.counters import LinkCounters
from mininet_topos.emulator.link import EmulatedLink, End
from mininet_topos.emulator.pair import INTERFACE, RIGHT, Host, Pair, joined, two_namespaces
from mininet_topos.emulator.tun import UNREAD_PACKETS
from mininet_topos.errors import EmulatorError
from mininet_topos.links import LinkSpec, PacketLoss, Queue, Way

from .waiting import until, wait_for_the_end

pytestmark = pytest.mark.root

PORT = 5001
ROOT = Path(__file__).parents[3]


def spec(**way: object) -> LinkSpec:
    made = Way(**way)  # type: ignore[arg-type]
    return LinkSpec(name="test", forward=made, backward=made)


def is_running(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


def interfaces(netns_fd: int) -> str:
    return Host(netns_fd).run("ip", "-brief", "link")


def send(hosts: Pair, packets: int, payload_bytes: int = 100) -> None:
    with hosts.left.socket(socket.SOCK_DGRAM) as sender:
        for number in range(packets):
            sender.sendto(struct.pack("!I", number) + bytes(payload_bytes - 4), (RIGHT, PORT))


def test_packets_cross_and_are_counted() -> None:
    with joined(spec(delay_s=0.01)) as hosts, hosts.right.socket(socket.SOCK_DGRAM) as receiver:
        receiver.bind((RIGHT, PORT))
        receiver.settimeout(10)
        send(hosts, 3)
        assert [struct.unpack_from("!I", receiver.recv(200))[0] for _ in range(3)] == [0, 1, 2]
        counted = hosts.link.counters()
        assert (counted.forward.packets_in, counted.forward.packets_out) == (3, 3)
        assert counted.forward.bytes_in == counted.forward.bytes_out == 3 * 128
        assert counted.backward.packets_in == 0
        assert counted.started_s < counted.at_s <= time.monotonic()
    last = hosts.link.counters()
    assert last.forward.packets_out == 3
    assert hosts.link.stop() == last


def test_the_device_sends_nothing_by_itself() -> None:
    """A router solicitation would take its share of a slow link, and of a count."""
    with joined(spec()) as hosts:
        addresses = hosts.left.run("ip", "-6", "address", "show", "dev", INTERFACE)
        assert "fe80" not in addresses
        assert hosts.link.counters().forward.packets_in == 0


def test_a_stopped_link_leaves_nothing() -> None:
    with two_namespaces() as (left, right):
        before = [interfaces(left), interfaces(right)]
        descriptors = os.listdir("/proc/self/fd")
        link = EmulatedLink.start(
            spec(), End(interface="a", netns_fd=left), End(interface="b", netns_fd=right)
        )
        assert "a" in interfaces(left).split()
        link.stop()
        assert not is_running(link.pid)
        until(lambda: [interfaces(left), interfaces(right)] == before)
        assert os.listdir("/proc/self/fd") == descriptors
        with pytest.raises(EmulatorError, match="is stopped"):
            link.restart()


def test_both_ends_may_be_in_one_namespace() -> None:
    with two_namespaces() as (left, _):
        ends = [End(interface=name, netns_fd=left) for name in ("a", "b")]
        with EmulatedLink.start(spec(), *ends):
            assert {"a", "b"} <= set(interfaces(left).split())


def test_an_end_may_be_named_by_a_process() -> None:
    with two_namespaces() as (left, right):
        host = Host(left)
        with subprocess.Popen(["nsenter", f"--net=/proc/{os.getpid()}/fd/{left}", "cat"],
                              stdin=subprocess.PIPE) as cat:  # fmt: skip
            home = os.readlink("/proc/self/ns/net")
            until(lambda: os.readlink(f"/proc/{cat.pid}/ns/net") != home)
            with EmulatedLink.start(
                spec(), End(interface="a", pid=cat.pid), End(interface="b", netns_fd=right)
            ):
                assert "a" in host.run("ip", "-brief", "link").split()
            assert cat.stdin is not None
            cat.stdin.close()


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("lo", "lo: one of that name exists"), ("x" * 16, "1 to 15 bytes"), ("", "1 to 15 bytes")],
)
def test_a_device_that_cannot_be_made_is_told(name: str, sentence: str) -> None:
    with two_namespaces() as (left, right):
        with pytest.raises(EmulatorError, match=sentence):
            EmulatedLink.start(
                spec(), End(interface="a", netns_fd=left), End(interface=name, netns_fd=right)
            )
        until(lambda: "a" not in interfaces(left).split())


def test_an_end_is_a_process_or_a_namespace() -> None:
    with pytest.raises(EmulatorError, match="either a process or a namespace"):
        End(interface="a")
    with pytest.raises(EmulatorError, match="has no network namespace"):
        EmulatedLink.start(spec(), *(End(interface=name, pid=2**22 + 1) for name in "ab"))


OWNER = """
import sys, time
from mininet_topos.emulator.counters import LinkCounters
from mininet_topos.emulator.link import EmulatedLink, End
from mininet_topos.links import LinkSpec, Way
ends = [End(interface=name, netns_fd=int(fd)) for name, fd in zip("ab", sys.argv[1:])]
link = EmulatedLink.start(LinkSpec(name="test", forward=Way(), backward=Way()), *ends)
print(link.pid, flush=True)
time.sleep(60)
"""


def test_it_ends_when_its_owner_is_killed() -> None:
    with two_namespaces() as ends:
        owner = subprocess.Popen(
            [sys.executable, "-c", OWNER, *map(str, ends)],
            pass_fds=ends,
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )
        with owner:
            assert owner.stdout is not None
            emulator = int(owner.stdout.readline())
            assert is_running(emulator)
            owner.send_signal(signal.SIGKILL)
        until(lambda: not is_running(emulator))
        until(lambda: "a" not in interfaces(ends[0]).split())


def test_ctrl_c_is_left_to_its_owner() -> None:
    with joined(spec()) as hosts:
        os.kill(hosts.link.pid, signal.SIGINT)
        assert hosts.link.counters().forward.packets_in == 0
        assert is_running(hosts.link.pid)


def test_an_emulator_that_ended_by_itself_is_an_error() -> None:
    with pytest.raises(EmulatorError, match="has ended with status -9"), joined(spec()) as hosts:
        os.kill(hosts.link.pid, signal.SIGKILL)
        until(lambda: not is_running(hosts.link.pid))


def test_a_disk_that_is_full_is_an_error() -> None:
    with (
        pytest.raises(EmulatorError, match="No space left on device"),
        joined(spec(), capture=Path("/dev/full")) as hosts,
    ):
        send(hosts, 1000)
        until(lambda: not is_running(hosts.link.pid))


def test_a_capture_that_cannot_be_completed_at_the_end_is_an_error() -> None:
    """So little was written that it is only tried when the file is closed."""
    with (
        pytest.raises(EmulatorError, match="No space left on device"),
        joined(spec(), capture=Path("/dev/full")) as hosts,
    ):
        send(hosts, 1)
        wait_for_the_end(hosts.link, 1)
    assert hosts.link.counters().forward.packets_in == 1


def test_restart_begins_anew_with_the_same_losses() -> None:
    lossy = spec(loss=PacketLoss(probability=0.5))
    with joined(lossy) as hosts, hosts.right.socket(socket.SOCK_DGRAM) as receiver:
        receiver.bind((RIGHT, PORT))

        def survivors() -> list[bytes]:
            send(hosts, 100)
            counted = wait_for_the_end(hosts.link, 100).forward
            assert counted.losses + counted.packets_out == 100
            return [receiver.recv(200) for _ in range(counted.packets_out)]

        first = survivors()
        assert 0 < len(first) < 100
        begun_s = hosts.link.counters().started_s
        hosts.link.restart()
        assert hosts.link.counters().forward.packets_in == 0
        assert hosts.link.counters().started_s > begun_s
        assert survivors() == first
        hosts.link.restart(spec())
        assert len(survivors()) == 100
        with pytest.raises(EmulatorError, match="keeps its MTU"):
            hosts.link.restart(LinkSpec(name="x", forward=Way(), backward=Way(), mtu=900))
        assert hosts.link.counters().forward.packets_in == 100  # and goes on


def test_occupancy_is_recorded_and_read_while_it_runs_and_after() -> None:
    slow = spec(rate_bps=128 * 8 * 20, queue=Queue(packets=9))  # a packet takes 50 ms
    with joined(slow, sample_s=0.002) as hosts:
        send(hosts, 20)
        until(lambda: hosts.link.counters().forward.waiting_packets == 5)
        read = hosts.link.occupancy()
        assert len(read["forward"]) == len(read["backward"]) > 10
        hosts.link.record(None)
        until(lambda: hosts.link.counters().forward.packets_out == 10)
    recorded = hosts.link.occupancy()
    assert recorded["forward"][: len(read["forward"])] == read["forward"]
    times = [sample.at_s for sample in recorded["forward"]]
    assert times == sorted(times)
    assert times == [sample.at_s for sample in recorded["backward"]]
    seen = [sample.packets for sample in recorded["forward"]]
    assert max(seen) == 9
    assert set(seen[seen.index(9) :]) >= {9, 8, 7, 6}
    assert all(sample.bytes == 128 * sample.packets for sample in recorded["forward"])
    assert min(seen[seen.index(9) :]) >= 4  # recording was stopped


def test_the_capture_has_what_entered_the_link(tmp_path: Path) -> None:
    capture = tmp_path / "link.pcap"
    begun_s = time.monotonic()
    with joined(spec(loss=PacketLoss(probability=1)), capture=capture) as hosts:
        send(hosts, 50, payload_bytes=1000)
        until(lambda: hosts.link.counters().forward.packets_in == 50)
    noted = list(read_capture(capture))
    assert [packet.size_bytes for packet in noted] == [1028] * 50
    assert all(len(packet.head) == 128 for packet in noted)
    assert [struct.unpack_from("!I", packet.head, 28)[0] for packet in noted] == list(range(50))
    times = [begun_s, *(packet.at_s for packet in noted), time.monotonic()]
    assert times == sorted(times)


def test_a_far_end_that_is_down_is_counted() -> None:
    with joined(spec()) as hosts:
        hosts.right.run("ip", "link", "set", INTERFACE, "down")
        send(hosts, 3)
        until(lambda: hosts.link.counters().forward.packets_out == 3)
        assert hosts.link.counters().forward.refused == 3


def test_an_emulator_that_was_stopped_for_a_while_admits_it() -> None:
    with joined(spec(delay_s=0.2)) as hosts:
        send(hosts, 20)
        until(lambda: hosts.link.counters().forward.packets_in == 20)
        os.kill(hosts.link.pid, signal.SIGSTOP)
        due_s = time.monotonic() + 0.2
        until(lambda: time.monotonic() > due_s + 0.05)
        os.kill(hosts.link.pid, signal.SIGCONT)
        counted = wait_for_the_end(hosts.link, 20)
        assert counted.late_packets == 20
        assert counted.most_lateness_s > 0.05
        assert not counted.could_keep_up


def test_packets_that_were_never_read_are_counted() -> None:
    sent = UNREAD_PACKETS + 500
    with joined(spec()) as hosts:
        os.kill(hosts.link.pid, signal.SIGSTOP)
        try:
            send(hosts, sent)
        finally:
            os.kill(hosts.link.pid, signal.SIGCONT)
        until(lambda: hosts.link.counters().forward.packets_out == UNREAD_PACKETS)
        counted = hosts.link.counters()
        assert counted.forward.device_drops == 500
        assert not counted.could_keep_up


@pytest.mark.parametrize("realtime", [True, False])
def test_the_counters_tell_how_the_kernel_schedules(realtime: bool) -> None:
    with two_namespaces() as (left, right):
        ends = [End(interface="a", netns_fd=left), End(interface="b", netns_fd=right)]
        with EmulatedLink.start(spec(), *ends, realtime=realtime) as link:
            is_realtime = os.sched_getscheduler(link.pid) == os.SCHED_FIFO
            assert (link.counters().scheduling == "fifo") is is_realtime
            assert realtime or not is_realtime
    last = link.counters()
    assert LinkCounters.from_json(json.loads(json.dumps(last.to_json()))) == last
    assert last.to_json()["could_keep_up"] is True


def test_what_is_no_capture_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"GIF89a" * 10)
    with pytest.raises(ValueError, match="is no capture of a link"):
        list(read_capture(other))
