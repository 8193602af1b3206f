"""What one run of one point gives: plain values, as they are stored and as measures read them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from ..errors import ExperimentError

LEFT_OUT = "left out: "
"""How the error of a run begins that was not tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowOutcome:
    """One flow of a run."""

    kind: str
    """Class of the flow: Xftp, Bulk …"""

    command: str
    """What was run, for people."""

    started_s: float
    """After the beginning of the scenario."""

    seconds: float
    """Of the whole program, control connection included."""

    data_s: float
    """From the first data connection to the end of the data; `seconds` where nobody can tell."""

    bytes: int
    """Payload that arrived."""

    report: dict[str, Any] = field(default_factory=dict)
    """What the program itself reports."""

    history: list[list[float]] = field(default_factory=list)
    """Rows of (t_s since the beginning of the scenario, acknowledged bytes, sum of congestion
    windows in segments, retransmitted segments, connections), summed over the flow's data
    connections at the sender; it ends with the last sample before the connections closed."""

    @property
    def throughput_bytes_per_s(self) -> float:
        """Payload per second of the data phase."""
        return self.bytes / self.data_s if self.data_s > 0 else 0.0

    def rate_between(self, first: float, last: float) -> float | None:
        """Payload rate in bytes/s between two shares of `bytes`; None where it was not recorded."""
        begin, end = (self._time_at(share * self.bytes) for share in (first, last))
        if begin is None or end is None or end <= begin:
            return None
        return (last - first) * self.bytes / (end - begin)

    def rate_from_to(self, begin_s: float, end_s: float) -> float | None:
        """Payload rate in bytes/s between two times of the scenario."""
        begin, end = self._bytes_at(begin_s), self._bytes_at(end_s)
        if begin is None or end is None or end_s <= begin_s:
            return None
        return (end - begin) / (end_s - begin_s)

    def _time_at(self, acknowledged: float) -> float | None:
        """Give when so many bytes were acknowledged, between samples in proportion."""
        rows = self.history
        after = bisect_left(rows, acknowledged, key=lambda row: row[1])
        if after == len(rows) or after == 0:
            return None
        (t0, b0), (t1, b1) = rows[after - 1][:2], rows[after][:2]
        return t0 + (t1 - t0) * (acknowledged - b0) / (b1 - b0)

    def _bytes_at(self, t_s: float) -> float | None:
        """Give the bytes acknowledged at a time; None before the first sample."""
        rows = self.history
        after = bisect_left(rows, t_s, key=lambda row: row[0])
        if not rows or after == 0:
            return None
        if after == len(rows):
            return rows[-1][1]
        (t0, b0), (t1, b1) = rows[after - 1][:2], rows[after][:2]
        return b0 + (b1 - b0) * (t_s - t0) / (t1 - t0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One run of one point of an experiment."""

    series: str
    x: float
    repeat: int = 0
    """0, 1 … with --repeat."""

    seed: int = 1
    started: str = ""
    """Time of day, ISO 8601."""

    seconds: float = 0.0
    """From the topology's start to its end."""

    flows: dict[str, FlowOutcome] = field(default_factory=dict)
    values: dict[str, float] = field(default_factory=dict)
    """Numbers that the point itself computed."""

    links: dict[str, Any] = field(default_factory=dict)
    """The emulator's counters at the end, per link."""

    queues: dict[str, Any] = field(default_factory=dict)
    """Occupancy over time per link and direction: rows of (t_s, packets, bytes)."""

    lab: dict[str, Any] = field(default_factory=dict)
    """Topology, addresses, offloads, sysctls, as the lab describes itself."""

    kept_up: bool = True
    """Whether emulators and hosts kept to their times; a run that says no is not judged."""

    hosts_late_s: float = 0.0
    """By how much 95% of the samples of each sending host's record were no later than due."""

    alone: bool = False
    """Whether it was run again by itself after a neighbour had disturbed it."""

    error: str = ""
    """Why there are no flows: the run failed."""

    @property
    def left_out(self) -> bool:
        """Whether it was not run as a program is not installed here: no failure."""
        return self.error.startswith(LEFT_OUT)

    @property
    def usable(self) -> bool:
        """Whether numbers may be taken from it."""
        return not self.error and self.kept_up

    def flow(self, name: str = "") -> FlowOutcome:
        """Give a flow by name, the only one without. Raises ExperimentError."""
        if name:
            if name not in self.flows:
                raise ExperimentError(f"there is no flow {name} among {', '.join(self.flows)}")
            return self.flows[name]
        if len(self.flows) != 1:
            raise ExperimentError(f"name one of the flows {', '.join(self.flows) or '(none)'}")
        return next(iter(self.flows.values()))

    def as_json(self) -> dict[str, Any]:
        """Give plain values."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Outcome:
        """Read what `as_json` gave. Raises ExperimentError for something else."""
        try:
            told = {each.name: stored[each.name] for each in fields(cls) if each.name in stored}
            told["flows"] = {
                name: FlowOutcome(**flow) for name, flow in dict(stored.get("flows", {})).items()
            }
            return cls(**told)
        except (TypeError, KeyError, ValueError, AttributeError) as error:
            raise ExperimentError(f"this is no stored outcome: {error}") from error
