"""What a file of an experiment is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..errors import ExperimentError
from .flows import AnyFlow
from .measures import Metric
from .rules import Rule

if TYPE_CHECKING:
    from ..tcp_settings import TcpSettings

PACKETS_PER_CORE = 6_000
"""Packets per second that a core may be asked to emulate while others run beside it: a fraction of
what the emulator can, so that it is never late."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One running topology and the flows in it. Raises ExperimentError for what cannot be."""

    topology: str
    """Name in `mininet_topos.topologies.topos`."""

    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of that topology."""

    tcp: TcpSettings | None = None
    """Switches of the namespaces; None: as the kernel has them."""

    flows: tuple[AnyFlow, ...]

    seconds: float
    """How long it takes, about, on the emulated clock, set-up excluded."""

    timeout_s: float = 0.0
    """When it is given up; 0: four times `seconds` and a minute."""

    host_tcp: Mapping[str, TcpSettings] = field(default_factory=dict)
    """Of single hosts, instead."""

    delayed_acks_on: str = ""
    """Where ACKs are left out if connections cross several emulated links: only on this one."""

    delayed_acks: bool = False
    """The receiver acknowledges every second segment throughout, as BSD did: it is made to
    acknowledge every one, and the link's backward way leaves every second pure ACK out."""

    packets_per_s: float = 700.0
    """All links and directions at full load: decides how many scenarios run side by side."""

    path_rtt_s: float = 0.0
    """RTT of the shortest path: lateness is judged by it where single links are shorter."""

    may_be_late: bool = False
    """What the emulator can do is the question: its lateness does not spoil the run."""

    sample_interval_s: float = 0.25
    """Of the records over time."""

    def __post_init__(self) -> None:
        names = [flow.name for flow in self.flows]
        if not names or len(set(names)) != len(names):
            raise ExperimentError(f"flows need names of their own, these are {names}")
        if all(flow.background for flow in self.flows):
            raise ExperimentError("a scenario of background flows only has no end")
        if self.seconds <= 0:
            raise ExperimentError(f"a scenario cannot take {self.seconds} s")

    @property
    def limit_s(self) -> float:
        """When it is given up."""
        return self.timeout_s or 4 * self.seconds + 60

    @property
    def cores(self) -> float:
        """Share of the machine's cores it is counted with; processes start and end beside."""
        return 0.12 + self.packets_per_s / PACKETS_PER_CORE


@dataclass(frozen=True, slots=True, kw_only=True)
class Calculation:
    """A point that is computed: no topology, no root."""

    compute: Callable[[], Mapping[str, float]]
    """Gives named numbers, which `measures.value` reads."""

    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One place of a figure."""

    series: str
    """Which line or bar it belongs to."""

    x: float
    scenario: Scenario | Calculation


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A value of the source, printed and plotted beside ours."""

    metric: str
    series: str
    x: float
    value: float
    note: str = ""
    """What must be known about it, such as "read from the text: approximately"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure of a metric over x."""

    metric: str
    title: str
    x_label: str
    kind: str = "lines"
    """lines or bars."""

    log_x: bool = False
    log_y: bool = False
    x_names: Mapping[float, str] = field(default_factory=dict)
    """Names in place of numbers, such as {204800: "200 KB"}."""

    series: tuple[str, ...] = ()
    """Only these, in this order; empty: all that have the metric."""

    zero_based: bool = True
    """Whether the y axis begins at 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """A figure over time, from the records of single runs."""

    quantity: str
    """acknowledged (KB), throughput (KB/s), window (segments) or queue (packets)."""

    title: str
    points: tuple[tuple[str, float], ...] = ()
    """Whose runs, by series and x; empty: of all."""

    link: str = ""
    """Of a queue: the link; its forward direction is shown."""

    flows: tuple[str, ...] = ()
    """Of these flows; empty: all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """One row: a published figure or table, and how it is measured again."""

    name: str
    """Such as A2."""

    title: str
    source: str
    """Text and figure."""

    measures: str
    """What is measured, in a sentence."""

    points: Callable[[bool], tuple[Point, ...]]
    """The points; True: only as many, and as large files, as a quick run needs."""

    metrics: tuple[Metric, ...]
    figures: tuple[Figure | Timeline, ...] = ()
    published: tuple[Published, ...] = ()
    rules: tuple[Rule, ...] = ()
    deviations: tuple[str, ...] = ()
    """What could not be recreated, and what is done in its place."""

    @property
    def needs_root(self) -> bool:
        """Whether anything of it is run rather than computed."""
        return any(isinstance(point.scenario, Scenario) for point in self.points(True))

    def metric(self, name: str) -> Metric:
        """Give a metric by name. Raises ExperimentError."""
        for metric in self.metrics:
            if metric.name == name:
                return metric
        raise ExperimentError(f"{self.name} has no metric {name}")

    def work_s(self, *, quick: bool) -> float:
        """Sum of what its points take, one after the other."""
        return sum(point.scenario.seconds + SETUP_S for point in self.points(quick))


SETUP_S = 6.0
"""Starting and ending a topology and its programs."""
