"""One run of one scenario: its topology, its flows, its records."""

from __future__ import annotations

import inspect
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tuning import congestion
from tuning.errors import TuningError

from ..errors import ExperimentError
from ..experiments.outcome import Outcome
from ..experiments.spec import Calculation, Point, Scenario
from ..links import LinkSpec
from .lateness import Minds, hosts_kept_up, kept_up
from .programs import Place, Program, program_for
from .records import MOST_ROWS, Recorder, queue_rows

if TYPE_CHECKING:
    from ..emulator.counters import LinkCounters
    from ..network import Host, Lab

BY_LOSS = (frozenset(congestion.ALGORITHMS) | {"reno"}) - {"xftp_rented"}
"""Algorithms that take no delay for congestion."""

BY_RATE = frozenset({"bbr", "xftp_rented"})
"""Those that have a rate, and mind no delay but the least one, of all or of a round trip."""

_POLL_S = 0.05
_MOUNT_TIMEOUT_S = 20.0


def run_point(point: Point, *, repeat: int = 0, seed: int = 1) -> Outcome:
    """Run or compute a point. Raises LabError."""
    started = datetime.now(UTC).isoformat(timespec="seconds")
    begin_s = time.monotonic()
    if isinstance(point.scenario, Calculation):
        outcome = Outcome(
            series=point.series, x=point.x, values=dict(point.scenario.compute()), kept_up=True
        )
    else:
        outcome = replace(_run(point.scenario, seed), series=point.series, x=point.x)
    return replace(
        outcome,
        repeat=repeat,
        seed=seed,
        started=started,
        seconds=round(time.monotonic() - begin_s, 3),
    )


def algorithms(scenario: Scenario) -> frozenset[str]:
    """Name the algorithms of `tuning` that a scenario's flows need."""
    asked = {flow.sockets.congestion for flow in scenario.flows}
    if any(flow.sockets.rate_bps for flow in scenario.flows):
        asked.add("xftp_rented")  # what --rate takes where it is loaded
    if scenario.tcp is not None:
        asked.add(getattr(scenario.tcp, "congestion_control", None) or "")
    return frozenset(asked & set(congestion.ALGORITHMS))


def senders_mind(scenario: Scenario) -> Minds:
    """Say what the windows of a scenario's senders change by.

    Those that use the smoothed RTT as a factor do not mind a single late packet.
    """
    usual = getattr(scenario.tcp, "congestion_control", None)
    used = {
        # What --rate takes where it is loaded.
        flow.sockets.congestion or ("xftp_rented" if flow.sockets.rate_bps else usual)
        for flow in scenario.flows
    }
    if used <= BY_LOSS:
        return "losses"
    return "rates" if used <= BY_LOSS | BY_RATE else "delays"


def _run(scenario: Scenario, seed: int) -> Outcome:
    # Mininet is imported only where it is used: `list` and `report` work without it.
    from ..network import Lab
    from ..tcp_settings import TcpSettings

    topology = build(scenario, seed)
    with ExitStack() as stack:
        try:
            stack.enter_context(congestion.loaded(algorithms(scenario)))
        except TuningError as error:
            raise ExperimentError(str(error)) from error
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="xftp-lab-")))
        tcp = scenario.tcp or TcpSettings()
        host_tcp = dict(scenario.host_tcp)
        if scenario.delayed_acks:
            tcp = replace(tcp, quick_ack=True)
            host_tcp = {name: replace(each, quick_ack=True) for name, each in host_tcp.items()}
        lab = stack.enter_context(Lab(topology, tcp=tcp, host_tcp=host_tcp))
        if algorithms(scenario):
            for host in lab.topology.host_names:
                _reveal_parameters(lab.host(host))
        return _run_flows(scenario, lab, scratch, seed)


def _reveal_parameters(host: Host) -> None:
    """Let a host's programs reach the map of the algorithms' parameters. Raises ExperimentError.

    mnexec mounts a new /sys over the one that has the BPF file system in it: below it is the old.
    """
    pin = "/sys/fs/bpf/xftp/parameters"
    script = f"test -e {pin} || umount --lazy /sys; test -e {pin}"
    done = host.run(["sh", "-c", script], timeout=_MOUNT_TIMEOUT_S)
    if done.returncode != 0:
        raise ExperimentError(f"{host.name} cannot reach {pin}: {done.stderr.strip()}")


def build(scenario: Scenario, seed: int) -> Any:
    """Build the scenario's topology, with the seed if it takes one. Raises LabError."""
    from ..topologies import topos

    if scenario.topology not in topos:
        known = ", ".join(sorted(topos))
        raise ExperimentError(f"there is no topology {scenario.topology}: {known} are")
    make = topos[scenario.topology]
    arguments = dict(scenario.parameters)
    if "seed" in inspect.signature(getattr(make, "build", make)).parameters:
        arguments.setdefault("seed", seed)
    return make(**arguments)


def link_spec(spec: LinkSpec, scenario: Scenario) -> LinkSpec:
    """Give a link as the scenario wants it: with every second ACK left out, or as it is."""
    if not scenario.delayed_acks:
        return spec
    return replace(spec, backward=replace(spec.backward, delayed_acks=True))


def _run_flows(scenario: Scenario, lab: Lab, scratch: Path, seed: int) -> Outcome:
    place = Place(host=lab.host, scratch=scratch, seed=seed)
    with ExitStack() as stack:
        programs: list[Program] = []
        for slot, flow in enumerate(scenario.flows):
            program = program_for(flow, place, slot)
            stack.callback(program.stop)
            program.prepare()
            programs.append(program)
        senders = {program.flow.sender: program.sender for program in programs}
        # More rows than are kept would only take time from the programs that are measured.
        interval_s = max(scenario.sample_interval_s, scenario.seconds / MOST_ROWS)
        recorder = Recorder(senders, programs, scratch, interval_s)
        stack.callback(recorder.stop)
        for name, link in lab.links.items():
            # Counters and events begin with the flows.
            here = scenario.delayed_acks_on in ("", name)
            link.restart(link_spec(link.spec, scenario) if here else link.spec)
            link.record(interval_s)
        began_s = time.monotonic()
        _supervise(programs, began_s, scenario.limit_s)
        hosts_late_s = recorder.end()
        flows = {program.flow.name: program.finish(began_s) for program in programs}
        histories = recorder.histories(began_s)
        counters = {name: link.counters() for name, link in lab.links.items()}
        return Outcome(
            series="",
            x=0.0,
            flows={
                name: replace(flow, history=histories.get(name, [])) for name, flow in flows.items()
            },
            links={name: each.to_json() for name, each in counters.items()},
            queues={
                name: queue_rows(link.occupancy(), began_s) for name, link in lab.links.items()
            },
            lab=lab.describe(),
            hosts_late_s=hosts_late_s,
            kept_up=scenario.may_be_late or _in_time(lab, counters, hosts_late_s, scenario),
        )


def _in_time(
    lab: Lab, counters: Mapping[str, LinkCounters], hosts_late_s: float, scenario: Scenario
) -> bool:
    specs = {name: link.spec for name, link in lab.links.items()}
    path_rtt_s, minds = scenario.path_rtt_s, senders_mind(scenario)
    return hosts_kept_up(hosts_late_s, specs.values(), path_rtt_s) and all(
        kept_up(specs[name], each, path_rtt_s, minds=minds) for name, each in counters.items()
    )


def _supervise(programs: Sequence[Program], began_s: float, limit_s: float) -> None:
    """Start each flow in its time and wait for those in the foreground. Raises ExperimentError."""
    waiting = sorted(programs, key=lambda program: program.flow.start_s)
    running: list[Program] = []
    while waiting or any(not p.flow.background for p in running):
        now_s = time.monotonic() - began_s
        if now_s > limit_s:
            late = ", ".join(program.flow.name for program in [*running, *waiting])
            raise ExperimentError(f"not done after {limit_s:.0f} s: {late}")
        while waiting and waiting[0].flow.start_s <= now_s:
            running.append(program := waiting.pop(0))
            program.begin()
        running = [program for program in running if not program.done()]
        if not any(not p.flow.background for p in [*running, *waiting]):
            break
        time.sleep(_POLL_S)
