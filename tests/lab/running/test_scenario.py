"""Real topologies with real programs: every kind of flow moves its data, and nothing is left."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mininet", reason="the lab's extra is not installed")
pytest.importorskip("pyroute2", reason="the lab's extra is not installed")

from mininet_topos.experiments.flows import (
    BlockingStripes,
    Bulk,
    Sockets,
    Tool,
    WebLoad,
    Xftp,
)
from mininet_topos.experiments.outcome import Outcome
from mininet_topos.experiments.spec import Point, Scenario
from mininet_topos.running.scenario import run_point
from mininet_topos.running.worker import Order
from mininet_topos.tcp_settings import TcpSettings
from tuning.bpf import host as bpf
from xftp.protocol.records import RECORD_BYTES

PROJECT = Path(__file__).parents[3]


def missing() -> str | None:
    if os.geteuid() != 0:
        return "needs root: makes network namespaces"
    if shutil.which("mnexec") is None:
        return "needs mnexec: apt-get install --no-install-recommends mininet"
    if not Path("/dev/net/tun").exists():
        return "needs /dev/net/tun"
    return None


pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(missing() is not None, reason=missing() or ""),
]

RTT_S = 0.06
KB = 1000


def scenario(*flows: Any, **more: Any) -> Point:
    values: dict[str, Any] = {
        "topology": "hts_geo",
        "parameters": {"rtt_s": RTT_S},
        "tcp": TcpSettings(congestion_control="cubic", no_metrics_save=True),
        "flows": flows,
        "seconds": 5,
        "sample_interval_s": 0.02,
        **more,
    }
    return Point(series="s", x=1, scenario=Scenario(**values))


def run(*flows: Any, **more: Any) -> Outcome:
    return run_point(scenario(*flows, **more), seed=7)


@pytest.fixture(scope="module")
def mixture() -> Outcome:
    """Every kind of flow of ours at once; BPF algorithms where the kernel takes them."""
    ours = bpf.KERNEL_TYPES.exists()
    tuned = Sockets(congestion="xftp_abc", initial_window_segments=7) if ours else Sockets()
    told = Sockets(congestion="xftp_kack", parameters=(("k", 4),)) if ours else Sockets()
    return run(
        Xftp(name="get", size_bytes=900 * KB, connections=3, files=2, sockets=tuned),
        Xftp(name="put", size_bytes=300 * KB, direction="put"),
        Bulk(name="bulk", size_bytes=500 * KB, sockets=told),
        Bulk(name="later", duration_s=0.5, start_s=0.4),
        BlockingStripes(name="stripes", size_bytes=200 * KB, connections=2),
        Bulk(name="beside", background=True),
        WebLoad(name="web", load_bps=2e6, background=True),
    )


def test_xftp_moves_files_and_is_recorded(mixture: Outcome) -> None:
    flow = mixture.flow("get")
    assert flow.bytes == 2 * 900 * KB
    assert 0 < flow.data_s < flow.seconds
    assert len(flow.report["files"][0]["connections"]) == 3
    assert max(row[4] for row in flow.history) >= 3
    # Two files' records with their sequence numbers, a SYN for each connection, and what may be
    # sent a second time because a connection stood still.
    repeats = 2 * 32 * RECORD_BYTES
    assert 0 < flow.history[-1][1] <= 2 * 900 * KB + 4 * 2 * 111 + 20 + repeats
    assert mixture.flow("put").bytes == 300 * KB


def test_algorithms_and_parameters_are_granted(mixture: Outcome) -> None:
    """xftp would have refused to run (--strict-tuning)."""
    if not bpf.KERNEL_TYPES.exists():
        pytest.skip(f"needs {bpf.KERNEL_TYPES}")
    assert "--cc xftp_abc --initial-window 7 --strict-tuning" in mixture.flow("get").command


def test_plain_flows_begin_and_end_in_their_time(mixture: Outcome) -> None:
    assert mixture.flow("bulk").bytes == 500 * KB
    assert mixture.flow("later").started_s >= 0.4
    assert mixture.flow("later").bytes > 0
    assert mixture.flow("stripes").bytes == 200 * KB
    assert mixture.flow("beside").bytes > 0
    assert mixture.flow("web").report["browser"]["responses"] > 0
    for name in ("get", "put", "bulk", "later", "stripes", "beside"):
        assert mixture.flow(name).history, name


def test_the_outcome_has_what_is_needed_to_judge_it(mixture: Outcome) -> None:
    payload = sum(flow.bytes for flow in mixture.flows.values())
    assert mixture.links["satellite"]["forward"]["bytes_out"] > 0.9 * payload
    assert len(mixture.queues["satellite"]["forward"]) > 10
    assert mixture.lab["hosts"]["server"]["tcp"]["congestion_control"] == "cubic"
    assert mixture.seed == 7
    assert mixture.hosts_late_s > 0
    json.dumps(mixture.as_json(), allow_nan=False)


TOOLS: dict[Any, tuple[str, int, int]] = {
    "curl": ("curl", 2, 1),
    "lftp-pget": ("lftp", 1, 3),
    "lftp-mirror": ("lftp", 5, 3),
    "aria2": ("aria2c", 1, 3),
    "gridftp": ("globus-url-copy", 1, 3),
    "gridftp-files": ("globus-url-copy", 5, 2),
}


@pytest.mark.interop
def test_tools_of_today() -> None:
    """Those that are installed, all at once; the files that arrive are compared."""
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"
    for server in ("vsftpd",):
        if shutil.which(server, path=path) is None:
            pytest.skip(f"{server} is not installed")
    flows = [
        Tool(name=program, program=program, size_bytes=120 * KB, files=files, connections=count)
        for program, (client, files, count) in TOOLS.items()
        if shutil.which(client, path=path)
    ]
    if not flows:
        pytest.skip("none of the tools is installed")
    outcome = run(*flows)
    for flow in flows:
        assert outcome.flow(flow.name).bytes == flow.files * 120 * KB
        assert outcome.flow(flow.name).history, flow.name


def processes_with(word: str) -> list[int]:
    """Give the processes on whose command line a word is."""
    found = []
    for directory in Path("/proc").iterdir():
        if directory.name.isdigit():
            try:
                line = (directory / "cmdline").read_bytes()
            except OSError:
                continue
            if word.encode() in line:
                found.append(int(directory.name))
    return found


@pytest.mark.parametrize("way", [signal.SIGINT, "closed standard input"])
def test_an_interrupted_worker_leaves_nothing(way: Any, tmp_path: Path) -> None:
    order = Order(experiment="A2", index=0, quick=True, repeat=0, seed=1)
    worker = subprocess.Popen(
        [sys.executable, "-m", "mininet_topos.running.worker", order.to_json()],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=PROJECT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        start_new_session=True,
    )
    assert worker.stdin is not None
    try:
        # Its programs are known by the scratch directory in their arguments.
        deadline_s = time.monotonic() + 60
        while not any(b"xftpd" in _line(pid) for pid in processes_with(str(tmp_path))):
            assert worker.poll() is None, worker.communicate()[1].decode()
            assert time.monotonic() < deadline_s
            time.sleep(0.05)
        if way is signal.SIGINT:
            worker.send_signal(signal.SIGINT)
        else:
            worker.stdin.close()
            worker.stdin = None
        worker.communicate(timeout=60)
    finally:
        worker.kill()
        worker.wait()
    assert worker.returncode == 130
    assert processes_with(str(tmp_path)) == []
    assert list(tmp_path.iterdir()) == []
    links = subprocess.run(["ip", "link"], capture_output=True, text=True, check=True).stdout
    assert not re.search(r"\b(server|client)-", links)


def _line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
