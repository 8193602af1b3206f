"""Labs that end badly, meet each other, or cannot begin."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from mininet_topos import lifecycle, network
from mininet_topos.errors import MissingToolError, TopologyError
from mininet_topos.lifecycle import leftovers
from mininet_topos.network import Lab
from mininet_topos.tcp_settings import TcpSettings
from mininet_topos.topologies import topos
from mininet_topos.topology import links
from tests.lab.topologies.support import (
    Script,
    assert_nothing_left,
    eventually,
    lab_names,
    lab_processes,
    needs_lab,
)

pytestmark = needs_lab

OWNER = """
import json, sys
from mininet_topos.network import Lab
from mininet_topos.topologies import topos
from tests.lab.topologies.support import lab_processes
with Lab(topos["acts_t1"](), name="NAME") as lab:
    # A daemon: not a child of anything here, without environment.
    lab.host("client").run(["sh", "-c", "exec setsid -f env -i sleep 1000 >&- 2>&-"], timeout=20)
    print(json.dumps([lab.keeper_pid, sorted(lab_processes(lab))]), flush=True)
    sys.stdin.read()
"""


def unique(text: str) -> str:
    """Give a name that no other test process uses."""
    return f"{text}-{os.getpid()}"


def test_after_kill_9_of_the_owner_nothing_stays_and_the_name_is_free() -> None:
    name = unique("killed")
    with Script(OWNER.replace("NAME", name)) as owner:
        _, pids = json.loads(owner.line())
        assert len(pids) == 1 + 4 + 1 + 1  # keeper, nodes, emulator, daemon
        owner.process.kill()
        owner.process.wait()
        assert_nothing_left(name, set(pids))
    with Lab(topos["leo"](), name=name) as lab:
        assert lab.host("server").run(["ping", "-c1", "client"], timeout=30).returncode == 0


def test_a_leftover_is_ended_by_the_next_start() -> None:
    """A keeper that was stopped does not see its owner's end."""
    name = unique("leftover")
    with Script(OWNER.replace("NAME", name)) as owner:
        keeper, pids = json.loads(owner.line())
        os.kill(keeper, signal.SIGSTOP)
        owner.process.kill()
        owner.process.wait()
    with Lab(topos["leo"]()):
        assert_nothing_left(name, set(pids))


def test_only_a_lab_whose_owner_is_gone_is_a_leftover(monkeypatch: pytest.MonkeyPatch) -> None:
    name = unique("told")
    start_time, owner_pid = lifecycle._start_time, os.getpid()
    with Lab(topos["leo"](), name=name) as lab:
        assert name not in {left.name for left in leftovers()}
        # The owner's number is that of a later process.
        monkeypatch.setattr(
            lifecycle, "_start_time", lambda pid: start_time(pid) if pid != owner_pid else 1
        )
        assert [left.keeper_pid for left in leftovers() if left.name == name] == [lab.keeper_pid]
        # In another PID namespace its number says nothing.
        monkeypatch.setattr(lifecycle, "_pid_namespace", lambda: 1)
        assert name not in {left.name for left in leftovers()}


STEPS = {
    "the keeper": "mininet_topos.network._Network.__init__",
    "a node's shell": "mininet_topos.topology.nodes.LabNode._prepare",
    "a link": "mininet_topos.topology.links._set_address",
    "routes": "mininet_topos.topology.nodes.LabNode.config",
    "TCP": "mininet_topos.network.TcpSettings.apply",
    "names": "mininet_topos.network.give_names",
}

INTERRUPTED = """
import importlib, json, os, pathlib, signal, sys
from mininet_topos import network
from mininet_topos.topologies import topos
from tests.lab.topologies.support import lab_names, lab_processes

STEP, CALL = sys.stdin.readline().split()
*place, attribute = STEP.split(".")
owner = None
for depth in range(len(place), 0, -1):
    try:
        owner = importlib.import_module(".".join(place[:depth]))
    except ImportError:
        continue
    for part in place[depth:]:
        owner = getattr(owner, part)
    break
real = getattr(owner, attribute)
calls = 0
def interrupted(*arguments, **options):
    global calls, pids
    calls += 1
    if calls == int(CALL):
        pids = lab_processes(lab) if lab.keeper_pid else set()
        print(json.dumps(sorted(pids)), flush=True)
        os.kill(os.getpid(), signal.SIGINT)
    return real(*arguments, **options)
setattr(owner, attribute, interrupted)
lab = network.Lab(topos["acts_t1"](), name="NAME")
try:
    with lab:
        print("it was not interrupted", flush=True)
except KeyboardInterrupt:
    here = os.stat("/proc/self/ns/net").st_ino
    children = pathlib.Path("/proc/thread-self/children").read_text()
    print(json.dumps({"children": children.split(), "keeper": lab.keeper_pid}), flush=True)
"""


@pytest.mark.parametrize(
    "step", ["the keeper", "a node's shell", "a link", "routes", "TCP", "names"]
)
def test_ctrl_c_at_any_point_of_the_start_leaves_nothing(step: str) -> None:
    name = unique(f"interrupted {step}")
    with Script(INTERRUPTED.replace("NAME", name)) as owner:
        assert owner.process.stdin is not None
        call = 1 if step in ("the keeper", "names") else 2
        owner.process.stdin.write(f"{STEPS[step]} {call}\n")
        owner.process.stdin.flush()
        pids = json.loads(owner.line())
        assert json.loads(owner.line()) == {"children": [], "keeper": None}
        assert_nothing_left(name, set(pids))
        assert owner.process.wait(30) == 0


def test_ctrl_c_while_it_ends_waits_for_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = Lab(topos["leo"]()).start()
    pids = lab_processes(lab)
    kill = lifecycle.ProcessTree.kill

    def impatient(tree: lifecycle.ProcessTree) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        kill(tree)

    monkeypatch.setattr(lifecycle.ProcessTree, "kill", impatient)
    with pytest.raises(KeyboardInterrupt):
        lab.stop()
    assert_nothing_left(lab.name, pids)


def test_two_labs_of_one_topology_run_side_by_side() -> None:
    with Lab(topos["acts_t1"](rtt_s=0.1)) as one, Lab(topos["acts_t1"](rtt_s=0.3)) as other:
        assert one.name != other.name
        assert one.host("client").ip == other.host("client").ip
        pings = [
            lab.host("server").popen(
                ["ping", "-n", "-c2", "-i0.1", "client"], stdout=subprocess.PIPE, text=True
            )
            for lab in (one, other)
        ]
        took_ms = []
        for ping in pings:
            said, _ = ping.communicate(timeout=30)
            took_ms.append(float(said.split("time=")[1].split()[0]))
        assert 100 <= took_ms[0] < 200 and 300 <= took_ms[1] < 400
        gone = lab_processes(one)
        one.stop()
        assert_nothing_left(one.name, gone)
        assert other.host("server").run(["ping", "-c1", "client"], timeout=30).returncode == 0


def test_a_name_is_one_labs_at_a_time() -> None:
    name = unique("taken")
    with Lab(topos["leo"](), name=name) as first:
        pids = lab_processes(first)
        with pytest.raises(
            TopologyError, match=rf"'{name}' is running already \(process {os.getpid()}\)"
        ):
            Lab(topos["leo"](), name=name).start()
        assert lab_processes(first) == pids
    with Lab(topos["leo"](), name=name):
        assert name in lab_names()


@pytest.mark.parametrize("name", ["a\nb", "x" * 65])
def test_a_name_that_cannot_be_is_refused(name: str) -> None:
    with pytest.raises(TopologyError, match="no name for a lab"):
        Lab(topos["leo"](), name=name).start()


def test_a_running_lab_is_not_started_again() -> None:
    with Lab(topos["leo"]()) as lab, pytest.raises(TopologyError, match="running already"):
        lab.start()


def test_a_stopped_lab_has_no_hosts() -> None:
    lab = Lab(topos["leo"]())
    for ask in (lambda: lab.host("server"), lab.describe):
        with pytest.raises(TopologyError, match="not running"):
            ask()


def test_unknown_hosts_are_refused_in_a_sentence() -> None:
    with pytest.raises(TopologyError, match="Leo has no host nobody"):
        Lab(topos["leo"](), host_tcp={"nobody": TcpSettings()})
    with (
        Lab(topos["leo"]()) as lab,
        pytest.raises(TopologyError, match="only client, r1, r2, server"),
    ):
        lab.host("nobody")


async def test_in_an_asyncio_loop_it_asks_for_a_thread() -> None:
    lab = Lab(topos["leo"]())
    with pytest.raises(TopologyError, match="without a running asyncio loop"):
        lab.start()
    async with asyncio.timeout(60):
        await asyncio.to_thread(lab.start)
        await asyncio.to_thread(lab.stop)


def refuses(lab: Lab, sentence: str) -> None:
    """Check that a lab does not start, says why, and has left nothing."""
    with pytest.raises(MissingToolError, match=sentence):
        lab.start()
    assert lab.keeper_pid is None
    assert lab.name not in lab_names()


def test_without_root_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    refuses(Lab(topos["leo"]()), "needs root: use sudo")


def test_without_mnexec_it_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    refuses(Lab(topos["leo"]()), "mnexec is not installed: apt-get install")


def test_without_tun_devices_it_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(links, "TUN", str(tmp_path / "tun"))
    refuses(Lab(topos["leo"]()), "is not there: modprobe tun")


def test_a_step_that_fails_takes_everything_down(monkeypatch: pytest.MonkeyPatch) -> None:
    lab = Lab(topos["leo"]())
    pids: set[int] = set()

    def fail(*_: object) -> None:
        pids.update(lab_processes(lab))
        raise TopologyError("no names today")

    monkeypatch.setattr(network, "give_names", fail)
    with pytest.raises(TopologyError, match="no names today"):
        lab.start()
    assert len(pids) == 1 + 4 + 1
    assert_nothing_left(lab.name, pids)


def test_a_program_that_hangs_is_killed_at_its_time_out() -> None:
    with Lab(topos["leo"]()) as lab:
        with pytest.raises(subprocess.TimeoutExpired):
            lab.host("client").run(["sleep", "1000"], timeout=0.2)
        before = lab_processes(lab)
        assert lab.host("client").run(["cat"], timeout=20, input="read").stdout == "read"
        eventually(lambda: lab_processes(lab) == before, "the end of cat")
