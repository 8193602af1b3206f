"""Show the results: a table for the terminal, one for the README, JSON for programs."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from rich.table import Table

from bench.cases import Case, Direction
from bench.processes import Usage
from bench.runner import Results

FORMAT_VERSION = 1
GRIDFTP = "best GridFTP"
CURL = "curl + vsftpd"
HEADINGS = (
    "program",
    "direction",
    "N",
    "seconds",
    "range",
    "MB/s",
    f"speed / {GRIDFTP}",
    f"speed / {CURL}",
    "client CPU s/GB",
    "server CPU s/GB",
    "client peak MB",
    "server peak MB",
)


@dataclass(frozen=True)
class Row:
    """The medians of one case."""

    program: str
    direction: str
    connections: int
    seconds: float
    fastest_s: float
    slowest_s: float
    megabytes_per_s: float
    speed_to_gridftp: float | None
    """How many times as fast as the best GridFTP in the same direction."""
    speed_to_curl: float | None
    """How many times as fast as curl from vsftpd; downloads only."""
    client_cpu_s_per_gb: float
    server_cpu_s_per_gb: float
    client_peak_mb: float
    server_peak_mb: float


def rows(results: Results) -> list[Row]:
    gridftp = {
        direction: _best(results, "gridftp", direction)
        for direction in (Direction.GET, Direction.PUT)
    }
    curl = {Direction.GET: _best(results, "curl+vsftpd", Direction.GET)}
    return [
        _row(
            case, usages, results.size_bytes, gridftp.get(case.direction), curl.get(case.direction)
        )
        for case, usages in results.usages.items()
        if usages
    ]


def _best(results: Results, family: str, direction: Direction) -> float | None:
    """Return the least median time of a family."""
    return min(
        (
            median(usage.wall_s for usage in usages)
            for case, usages in results.usages.items()
            if usages and case.family == family and case.direction is direction
        ),
        default=None,
    )


def _row(
    case: Case, usages: list[Usage], size_bytes: int, gridftp_s: float | None, curl_s: float | None
) -> Row:
    seconds = median(usage.wall_s for usage in usages)
    gigabytes = size_bytes / 1e9
    return Row(
        program=case.name,
        direction=case.direction.value,
        connections=case.connections,
        seconds=seconds,
        fastest_s=min(usage.wall_s for usage in usages),
        slowest_s=max(usage.wall_s for usage in usages),
        megabytes_per_s=size_bytes / 1e6 / seconds,
        speed_to_gridftp=gridftp_s / seconds if gridftp_s else None,
        speed_to_curl=curl_s / seconds if curl_s else None,
        client_cpu_s_per_gb=median(usage.client_cpu_s for usage in usages) / gigabytes,
        server_cpu_s_per_gb=median(usage.server_cpu_s for usage in usages) / gigabytes,
        client_peak_mb=max(usage.client_peak_bytes for usage in usages) / 1e6,
        server_peak_mb=max(usage.server_peak_bytes for usage in usages) / 1e6,
    )


def _cells(row: Row) -> list[str]:
    def ratio(value: float | None) -> str:
        return "" if value is None else f"{value:.2f}"

    local = row.direction == Direction.COPY.value
    return [
        row.program,
        row.direction,
        "" if local else str(row.connections),
        f"{row.seconds:.2f}",
        f"{row.fastest_s:.2f}-{row.slowest_s:.2f}",
        f"{row.megabytes_per_s:.0f}",
        ratio(row.speed_to_gridftp),
        ratio(row.speed_to_curl),
        f"{row.client_cpu_s_per_gb:.2f}",
        "" if local else f"{row.server_cpu_s_per_gb:.2f}",
        f"{row.client_peak_mb:.0f}",
        "" if local else f"{row.server_peak_mb:.0f}",
    ]


def terminal_table(all_rows: Iterable[Row], title: str) -> Table:
    table = Table(title=title)
    for number, heading in enumerate(HEADINGS):
        table.add_column(
            heading,
            justify="left" if number < 2 else "right",
            no_wrap=number == 0,
        )
    for row in all_rows:
        table.add_row(*_cells(row))
    return table


def markdown_table(all_rows: Iterable[Row], title: str) -> str:
    lines = [
        title,
        "",
        "| " + " | ".join(HEADINGS) + " |",
        "|---|---|" + "---:|" * (len(HEADINGS) - 2),
        *("| " + " | ".join(_cells(row)) + " |" for row in all_rows),
    ]
    return "\n".join(lines)


def as_json(results: Results, all_rows: Iterable[Row], repeat: int) -> dict[str, Any]:
    return {
        "format": FORMAT_VERSION,
        "machine": machine(),
        "size_bytes": results.size_bytes,
        "repeat": repeat,
        "rows": [asdict(row) for row in all_rows],
        "runs": {
            case.label: [asdict(usage) for usage in usages]
            for case, usages in results.usages.items()
        },
        "left_out": results.left_out,
    }


def machine() -> str:
    """Return one line that names what was measured on."""
    model = platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return (
        f"{model}, {len(os.sched_getaffinity(0))} cores, {memory_gib:.0f} GiB, "
        f"{platform.system()} {platform.release()}, Python {platform.python_version()}"
    )
