"""Which runs may go side by side: pure decisions, told by the runner what started and ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

USABLE_SHARE = 0.8
"""Of the cores that runs may be counted for; the rest is the system's, and room for error."""


class Weighted(Protocol):
    """What is scheduled."""

    @property
    def cores(self) -> float:
        """Share of the machine's cores."""

    @property
    def seconds(self) -> float:
        """How long it takes, about."""

    @property
    def alone(self) -> bool:
        """Whether nothing may run beside it."""


J = TypeVar("J", bound=Weighted)


@dataclass(frozen=True, slots=True)
class Capacity(Generic[J]):
    """Cores to share out."""

    cores: float
    most_at_once: int | None = None

    def startable(self, waiting: Sequence[J], running: Sequence[J]) -> J | None:
        """Give the longest of the waiting that fits beside the running, None if none does.

        The longest first, so that they do not end alone at the end. One that is larger than the
        machine runs when nothing else does, and so do those that must be alone, last of all.
        """
        if any(job.alone for job in running):
            return None
        if self.most_at_once is not None and len(running) >= self.most_at_once:
            return None
        used = sum(job.cores for job in running)
        together = [job for job in waiting if not job.alone]
        fitting = [job for job in together if not running or used + job.cores <= self.cores]
        if fitting:
            return max(fitting, key=lambda job: job.seconds)
        if together or running or not waiting:
            return None
        return waiting[0]


def makespan_s(jobs: Sequence[J], capacity: Capacity[J]) -> float:
    """Give how long the jobs take under these decisions, if each takes its `seconds`."""
    waiting, running, now = list(jobs), list[tuple[float, J]](), 0.0
    while waiting or running:
        while (job := capacity.startable(waiting, [each for _, each in running])) is not None:
            waiting.remove(job)
            running.append((now + job.seconds, job))
        running.sort(key=lambda entry: entry[0])
        now, _ = running.pop(0)
    return now
