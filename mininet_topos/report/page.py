"""One self-contained HTML page, and its pictures as PNG files beside it."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jinja2

from ..experiments.spec import Experiment, Timeline
from ..experiments.table import place
from ..running.machine import revision
from ..running.results import Results, read_all, write_whole
from .judge import Judged, Row, judge, rows
from .plots import draw, shown_series

PAGE = "report.html"


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure of the page."""

    name: str
    alt: str
    png: bytes

    @property
    def data_url(self) -> str:
        """Give the picture as a part of the page."""
        return "data:image/png;base64," + base64.b64encode(self.png).decode()


@dataclass(frozen=True, slots=True)
class Section:
    """An experiment's part of the page."""

    judged: Judged
    pictures: tuple[Picture, ...]
    rows: tuple[Row, ...]
    problems: tuple[str, ...]
    """Runs that failed or were late."""

    facts: Mapping[str, str]
    deviations: tuple[str, ...]

    @property
    def verdict_class(self) -> str:
        """Give the verdict as a name for the style sheet."""
        return self.judged.verdict.name.lower().replace("_", "-")


def write_report(
    directory: Path,
    experiments: Mapping[str, Experiment],
    wrote: Callable[[Path], None] = lambda path: None,
) -> tuple[Path, list[Judged]]:
    """Write the page and the pictures of all results of a directory.

    Results of rows that there are no more are left out. Raises ResultsError.
    """
    found = [each for each in read_all(directory) if each.experiment in experiments]
    order = list(experiments)
    found.sort(key=lambda results: order.index(results.experiment))
    sections = [section(judge(experiments[each.experiment], each)) for each in found]
    for part in sections:
        for picture in part.pictures:
            wrote(write_whole(directory / "figures" / f"{picture.name}.png", picture.png))
    missing = [
        each for name, each in experiments.items() if name not in {r.experiment for r in found}
    ]
    page = write_whole(directory / PAGE, render(sections, missing).encode())
    return page, [part.judged for part in sections]


def section(judged: Judged) -> Section:
    """Draw and tabulate an experiment."""
    pictures = tuple(
        Picture(f"{judged.experiment.name}-{number}", figure.title, draw(judged, figure))
        for number, figure in enumerate(judged.experiment.figures, 1)
        if isinstance(figure, Timeline) or shown_series(judged, figure)
    )
    return Section(
        judged=judged,
        pictures=pictures,
        rows=tuple(rows(judged)),
        problems=_problems(judged.results),
        facts=_facts(judged),
        deviations=deviations(judged),
    )


def render(sections: Sequence[Section], missing: Sequence[Experiment]) -> str:
    """Give the page."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("mininet_topos.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html").render(
        sections=sections,
        missing=missing,
        machine=sections[0].judged.results.machine if sections else {},
        written=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        revision=revision(),
    )


def _problems(results: Results) -> tuple[str, ...]:
    problems = []
    for outcome in results.outcomes:
        where = f"{outcome.series} at {place(outcome.x)}, run {outcome.repeat + 1}"
        if outcome.error:
            problems.append(f"{where}: {outcome.error}")
        elif not outcome.kept_up:
            problems.append(f"{where}: links or hosts were late; not judged")
    return tuple(problems)


def _facts(judged: Judged) -> dict[str, str]:
    """Tell what the runs rest on: lateness, seeds, settings."""
    results = judged.results
    usable = [outcome for outcome in results.outcomes if outcome.usable]
    facts = {
        "run": f"{results.finished}, revision {results.machine.get('revision') or 'unknown'}",
        "runs": f"{len(usable)} usable of {len(results.outcomes)}, "
        f"{results.repeats} of each point, seeds from {results.extra.get('seed', 1)}",
    }
    if results.quick:
        facts["quick"] = "fewer points and smaller files than the figure has"
    if not results.complete:
        facts["incomplete"] = "it was interrupted before all points were run"
    links = [link for outcome in usable for link in outcome.links.values()]
    if links:
        facts["emulator"] = _lateness(links)
        late_s = max(outcome.hosts_late_s for outcome in usable)
        facts["hosts"] = f"95% of each record's samples were at most {1000 * late_s:.0f} ms late"
    settings = _settings(usable[0].lab) if usable else ""
    if settings:
        facts["namespaces"] = settings
    return facts


def _lateness(links: Sequence[Mapping[str, Any]]) -> str:
    ways = [link[direction] for link in links for direction in ("forward", "backward")]
    packets = sum(way["packets_out"] for way in ways)
    late = sum(way["late_packets"] for way in ways)
    worst_ms = 1000 * max(way["most_lateness_s"] for way in ways)
    drops = sum(way["queue_drops"] + way.get("early_drops", 0) for way in ways)
    losses = sum(way["losses"] + way.get("outage_losses", 0) for way in ways)
    return (
        f"{packets:,} packets, {late:,} of them more than 1 ms late (the worst {worst_ms:.2f} ms); "
        f"{drops:,} dropped by queues, {losses:,} lost by links"
    )


def _settings(lab: Mapping[str, Any]) -> str:
    """Give the TCP settings of a lab's hosts, in one line; those of the same together."""
    by_settings: dict[str, list[str]] = {}
    for name, host in lab.get("hosts", {}).items():
        told = ", ".join(f"{key} = {value}" for key, value in host.get("tcp", {}).items())
        by_settings.setdefault(told, []).append(name)
    return "; ".join(f"{', '.join(names)}: {told}" for told, names in by_settings.items() if told)


def deviations(judged: Judged) -> tuple[str, ...]:
    """Give what differs from the source: the row's own, as its rules today's, then those of the
    TCP settings that it ran with."""
    found = dict.fromkeys(judged.experiment.deviations)
    for outcome in judged.results.outcomes:
        for host in outcome.lab.get("hosts", {}).values():
            found |= dict.fromkeys(host.get("deviations", ()))
    return tuple(found)
