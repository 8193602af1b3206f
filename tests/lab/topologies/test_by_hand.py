"""`mn --custom mininet_topos/topologies.py --topo NAME`, as a person types it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab.topologies.support import ROOT, needs_lab

pytestmark = needs_lab

DESTRUCTIVE = ("killall", "pkill", "pgrep", "rm", "dpctl", "ovs-vsctl")
"""What mn runs after a failure: it kills by name what is not its own, and empties /tmp."""

LIMITS = ("net/core/rmem_max", "net/ipv4/tcp_rmem", "net/ipv4/neigh/default/gc_thresh1")
"""Some of what mn raises on the host when it starts."""


def mn(tmp_path: Path, topology: str, commands: str) -> subprocess.CompletedProcess[str]:
    """Run mn with commands typed, in an environment where it can do no harm."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in DESTRUCTIVE:
        tool = tools / name
        tool.write_text(f'#!/bin/sh\necho "{name} $*" >>{tmp_path}/called\nexit 1\n')
        tool.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    program = Path(sys.executable).with_name("mn")
    return subprocess.run(
        [sys.executable, program, "--custom", "mininet_topos/topologies.py", "--topo", topology],
        cwd=ROOT,
        env=environment,
        input=commands,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=90,
    )


def limits() -> list[str]:
    return [Path("/proc/sys", name).read_text() for name in LIMITS]


@pytest.mark.skipif(not Path(sys.executable).with_name("mn").exists(), reason="needs mn")
class TestMn:
    def test_it_opens_a_topology_without_controller_and_switch(self, tmp_path: Path) -> None:
        before = limits()
        typed = "links\nserver ping -c1 client\nclient ping -c1 server\n"
        done = mn(tmp_path, "acts_t1,rtt_s=0.1,queue=40", typed)
        assert done.returncode == 0, done.stdout
        assert "(OK OK)" in done.stdout
        assert done.stdout.count("1 packets transmitted, 1 received") == 2
        assert limits() == before

    def test_a_wrong_parameter_is_a_sentence_and_harms_nobody(self, tmp_path: Path) -> None:
        done = mn(tmp_path, "leo,queu=40", "")
        assert "TopologyError: Leo has no queu; it has queue, loss" in done.stdout
        called = tmp_path / "called"
        assert not called.exists() or "kill" not in called.read_text()
