"""Figures by matplotlib: ours as lines or bars with confidence intervals, the published points
beside them in black."""

from __future__ import annotations

import io
import itertools
from collections.abc import Iterable, Iterator, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from ..experiments.outcome import FlowOutcome, Outcome
from ..experiments.spec import Experiment, Figure, Published, Timeline
from ..experiments.table import Summary, place
from ..running.results import Results
from .judge import Judged

WIDTH_IN, HEIGHT_IN, DPI = 7.6, 4.4, 110

# Okabe and Ito 2008: told apart by people with any colour vision, and in grey by their markers.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#5F5F5F", "#B8A800")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
PUBLISHED_COLOUR = "black"

_QUANTITIES = {
    "acknowledged": "acknowledged data, KB",
    "throughput": "throughput, KB/s",
    "window": "sum of congestion windows, segments",
    "queue": "queue, packets",
}
_KB = 1024
_SMOOTHING_S = 1.0


def draw(judged: Judged, figure: Figure | Timeline) -> bytes:
    """Give a figure as PNG."""
    canvas = Canvas(figsize=(WIDTH_IN, HEIGHT_IN), dpi=DPI, layout="constrained")
    axes = canvas.add_subplot()
    axes.grid(visible=True, color="#dddddd", linewidth=0.7)
    axes.set_axisbelow(True)
    if isinstance(figure, Timeline):
        _draw_timeline(axes, judged, figure)
    else:
        _draw_figure(axes, judged, figure)
    axes.set_title(_title(judged, figure), fontsize=11)
    _add_legend(axes)
    picture = io.BytesIO()
    canvas.savefig(picture, format="png")
    return picture.getvalue()


def _title(judged: Judged, figure: Figure | Timeline) -> str:
    quick = " — quick run" if judged.results.quick else ""
    return f"{judged.experiment.name}: {figure.title}{quick}"


def _add_legend(axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    if len(labels) > 5:
        axes.legend(
            handles, labels, fontsize=8, loc="upper left", bbox_to_anchor=(1.01, 1), borderaxespad=0
        )
    elif labels:
        axes.legend(handles, labels, fontsize=9, loc="best", framealpha=0.9)


def _draw_figure(axes: Axes, judged: Judged, figure: Figure) -> None:
    metric = judged.experiment.metric(figure.metric)
    series = shown_series(judged, figure)
    beside = [each for each in judged.experiment.published if each.metric == figure.metric]
    if figure.kind == "bars":
        _bars(axes, judged, figure, series, beside)
    else:
        _lines(axes, judged, figure, series, beside)
    values = [s.mean for (m, _, _), s in judged.table.summaries.items() if m == figure.metric]
    if figure.log_y and any(value > 0 for value in values):
        axes.set_yscale("log")
    elif figure.zero_based:
        low, high = axes.get_ylim()
        axes.set_ylim(min(0.0, low), high * 1.05 if high > 0 else high)
    axes.set_xlabel(figure.x_label)
    axes.set_ylabel(metric.label)


def shown_series(judged: Judged, figure: Figure) -> tuple[str, ...]:
    """Give the series of a figure that have been measured or published, in the figure's order."""
    measured = judged.table.series(figure.metric)
    published = {
        each.series for each in judged.experiment.published if each.metric == figure.metric
    }
    return tuple(
        name for name in figure.series or measured if name in measured or name in published
    )


def _styles() -> Iterator[tuple[str, str]]:
    return zip(itertools.cycle(COLOURS), itertools.cycle(MARKERS), strict=False)


def _lines(
    axes: Axes,
    judged: Judged,
    figure: Figure,
    series: Iterable[str],
    beside: list[Published],
) -> None:
    if figure.log_x:
        axes.set_xscale("log", base=2 if not figure.x_names else 10)
    for name, (colour, marker) in zip(series, _styles(), strict=False):
        xs = judged.table.xs(figure.metric, name)
        summaries = [judged.table.summaries[figure.metric, name, x] for x in xs]
        axes.errorbar(
            xs,
            [summary.mean for summary in summaries],
            yerr=_intervals(summaries),
            color=colour,
            marker=marker,
            markersize=5,
            linewidth=1.6,
            capsize=3,
            label=name,
        )
        points = [each for each in beside if each.series == name]
        if points:
            _published(axes, [p.x for p in points], [p.value for p in points], marker, name)
    _name_ticks(axes, judged, figure)


def _intervals(summaries: Sequence[Summary]) -> list[float] | None:
    """Give the half widths of the confidence intervals; None if nothing was repeated."""
    widths = [summary.half_width for summary in summaries]
    return None if not any(widths) else [width or 0.0 for width in widths]


def _name_ticks(axes: Axes, judged: Judged, figure: Figure) -> None:
    measured = {x for m, _, x in judged.table.summaries if m == figure.metric}
    if figure.x_names:
        ticks = sorted(measured & set(figure.x_names) or set(figure.x_names))
        axes.set_xticks(ticks, [figure.x_names[x] for x in ticks])
        axes.minorticks_off()
    elif len(measured) <= 14:
        axes.set_xticks(sorted(measured), [place(x) for x in sorted(measured)])
        axes.minorticks_off()


def _published(axes: Axes, xs: list[float], values: list[float], marker: str, name: str) -> None:
    axes.plot(
        xs,
        values,
        linestyle="none",
        marker=marker,
        markersize=9,
        markerfacecolor="none",
        markeredgewidth=1.6,
        color=PUBLISHED_COLOUR,
        zorder=5,
        label=f"{name}, published",
    )


def _bars(
    axes: Axes,
    judged: Judged,
    figure: Figure,
    series: Iterable[str],
    beside: list[Published],
) -> None:
    names = list(series)
    places = sorted(
        {x for m, _, x in judged.table.summaries if m == figure.metric}
        | {each.x for each in beside}
    )
    width = 0.8 / max(1, len(names))
    labelled = False
    for number, (name, (colour, _)) in enumerate(zip(names, _styles(), strict=False)):
        shift = (number - (len(names) - 1) / 2) * width
        measured = [
            (place + shift, judged.table.summaries[figure.metric, name, x])
            for place, x in enumerate(places)
            if (figure.metric, name, x) in judged.table.summaries
        ]
        axes.bar(
            [place for place, _ in measured],
            [summary.mean for _, summary in measured],
            width * 0.92,
            yerr=_intervals([summary for _, summary in measured]),
            color=colour,
            capsize=3,
            label=name,
        )
        for each in beside:
            if each.series == name:
                centre = places.index(each.x) + shift
                axes.plot(
                    [centre - width * 0.46, centre + width * 0.46],
                    [each.value, each.value],
                    color=PUBLISHED_COLOUR,
                    linewidth=2.4,
                    label="" if labelled else "published",
                )
                labelled = True
    axes.set_xticks(range(len(places)), [figure.x_names.get(x, place(x)) for x in places])
    if any(len(figure.x_names.get(x, "")) > 12 for x in places):
        axes.tick_params(axis="x", labelrotation=25)
    axes.axhline(0, color="black", linewidth=0.8)


# -- over time --------------------------------------------------------------------------------


def _draw_timeline(axes: Axes, judged: Judged, figure: Timeline) -> None:
    styles = _styles()
    names = _place_names(judged.experiment)
    for outcome in _shown(judged.results, figure):
        where = f"{outcome.series} {names.get(outcome.x) or place(outcome.x)}"
        if figure.quantity == "queue":
            rows = outcome.queues.get(figure.link, {}).get("forward", [])
            colour, _ = next(styles)
            axes.plot(
                [row[0] for row in rows],
                [row[1] for row in rows],
                color=colour,
                linewidth=1.2,
                label=where,
            )
            continue
        for name, flow in outcome.flows.items():
            if figure.flows and name not in figure.flows:
                continue
            colour, _ = next(styles)
            times, values = curve(flow, figure.quantity)
            label = where if len(outcome.flows) == 1 else f"{where}, {name}"
            axes.plot(times, values, color=colour, linewidth=1.4, label=label)
    axes.set_xlabel("time, s")
    axes.set_ylabel(_QUANTITIES[figure.quantity])
    axes.set_ylim(bottom=0)
    axes.set_xlim(left=0)


def _place_names(experiment: Experiment) -> dict[float, str]:
    """Give the names that the experiment's figures have for places."""
    figures = (figure for figure in experiment.figures if isinstance(figure, Figure))
    return {x: name for figure in figures for x, name in figure.x_names.items()}


def _shown(results: Results, figure: Timeline) -> list[Outcome]:
    """Give the first repeat of every place that the figure names."""
    return [
        outcome
        for outcome in results.outcomes
        if outcome.repeat == 0
        and not outcome.error
        and (not figure.points or (outcome.series, outcome.x) in figure.points)
    ]


def curve(flow: FlowOutcome, quantity: str) -> tuple[list[float], list[float]]:
    """Give times and values of a flow's record; throughput is a mean over _SMOOTHING_S."""
    rows = flow.history
    if quantity == "acknowledged":
        return [row[0] for row in rows], [row[1] / _KB for row in rows]
    if quantity == "window":
        return [row[0] for row in rows], [row[2] for row in rows]
    times, values, first = [], [], 0
    for row in rows:
        while row[0] - rows[first][0] > _SMOOTHING_S:
            first += 1
        earlier = rows[max(0, first - 1)]
        if row[0] > earlier[0]:
            times.append(row[0])
            values.append((row[1] - earlier[1]) / (row[0] - earlier[0]) / _KB)
    return times, values
