"""The part of the demonstration that needs root: one file over an emulated geostationary link."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from mininet_topos.errors import ExperimentError
from mininet_topos.experiments.flows import Sockets, Xftp
from mininet_topos.experiments.outcome import FlowOutcome
from mininet_topos.running.lateness import kept_up, worst
from mininet_topos.running.programs import Place, Program, program_for
from tuning import congestion
from tuning.errors import TuningError

if TYPE_CHECKING:
    from mininet_topos.network import Lab

SIZE_BYTES = 10_000_000
RATE_BPS = 50e6
LINK = "satellite"
RENTED = "xftp_rented"
"""The algorithm that --rate uses where it is loaded."""

TIME_LIMIT_S = 60.0
POLL_S = 0.2
HEADERS = 1500 / 1448
"""What the link carries for each byte of the file."""


@dataclass(frozen=True)
class Way:
    """One of the ways to fetch the file that are shown."""

    connections: int
    told_rate: bool = False

    def __str__(self) -> str:
        plural = "s" if self.connections > 1 else ""
        rate = f", --rate {RATE_BPS / 1e6:.0f}mbit" if self.told_rate else ""
        return f"{self.connections} connection{plural}{rate}"

    def flow(self, number: int) -> Xftp:
        sockets = Sockets(rate_bps=RATE_BPS) if self.told_rate else Sockets()
        return Xftp(
            name=f"file{number}",
            size_bytes=SIZE_BYTES,
            connections=self.connections,
            sockets=sockets,
        )


WAYS = (Way(1), Way(8), Way(8, told_rate=True))


def why_not() -> str:
    """Say what keeps this part from being shown; "" if nothing does."""
    if os.geteuid() != 0:
        return "an emulated satellite link needs root, for its network namespaces: sudo make demo"
    return ""


def show(console: Console) -> None:
    """Fetch the file in each of the ways, and say how long each took.

    Raises LabError for what this machine lacks and for a transfer that failed.
    """
    # Mininet is imported only by those who can use it.
    from mininet_topos.network import Lab
    from mininet_topos.topology.dumbbells import HtsGeo

    with ExitStack() as stack:
        try:
            stack.enter_context(congestion.loaded(frozenset({RENTED})))
        except TuningError as error:
            console.print(f"--rate goes without {RENTED} here: {error}", highlight=False)
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="xftp-demo-")))
        with console.status("Making an emulated link …"):
            lab = stack.enter_context(Lab(HtsGeo()))
        console.print(table_of(list(fetched(lab, scratch, console))))


def fetched(lab: Lab, scratch: Path, console: Console) -> Iterator[tuple[Way, FlowOutcome]]:
    """Fetch the file in each way, showing what the link carries meanwhile."""
    place = Place(host=lab.host, scratch=scratch, seed=1)
    columns = (
        TextColumn("{task.description:<28}"),
        BarColumn(bar_width=30),
        TextColumn("{task.fields[link]:<36}"),
        TimeElapsedColumn(),
    )
    progress = Progress(
        *columns, console=console, refresh_per_second=5, disable=not console.is_terminal
    )
    with progress:
        for number, way in enumerate(WAYS):
            task = progress.add_task(str(way), total=SIZE_BYTES * HEADERS, link="")

            def carried(sent_bytes: int, text: str, task: TaskID = task) -> None:
                progress.update(task, completed=sent_bytes, link=text)

            yield way, fetch(lab, program_for(way.flow(number), place, number), carried)
            progress.update(task, completed=SIZE_BYTES * HEADERS, link="done")
            progress.stop_task(task)
            link = lab.links[LINK]
            if not kept_up(link.spec, link.counters()):
                how = worst({LINK: link.counters().to_json()})
                progress.console.print(f"The machine is busy: {how}.")


def fetch(lab: Lab, program: Program, carried: Callable[[int, str], None]) -> FlowOutcome:
    """Run one transfer; tell `carried` the bytes that crossed the link, and how, until its end.

    Raises LabError, also for a file that arrived otherwise than it was sent.
    """
    try:
        program.prepare()
        lab.links[LINK].restart()
        began_s = last_s = time.monotonic()
        last_bytes = 0
        program.begin()
        while not program.done():
            if time.monotonic() > began_s + TIME_LIMIT_S:
                raise ExperimentError(f"not done after {TIME_LIMIT_S:.0f} s")
            time.sleep(POLL_S)
            way, now_s = lab.links[LINK].counters().forward, time.monotonic()
            rate_bps = 8 * (way.bytes_out - last_bytes) / (now_s - last_s)
            carried(way.bytes_out, f"{rate_bps / 1e6:4.1f} Mbit/s, {way.waiting_packets} waiting")
            last_bytes, last_s = way.bytes_out, now_s
        return program.finish(began_s)
    finally:
        program.stop()


def table_of(outcomes: list[tuple[Way, FlowOutcome]]) -> Table:
    """Tabulate the transfers; files that differ would have been an error."""
    table = Table(
        title=f"{SIZE_BYTES / 1e6:g} MB from xftpd to xftp over an emulated GEO link:\n"
        f"{RATE_BPS / 1e6:g} Mbit/s, 600 ms; new connections, log-in included"
    )
    table.add_column("over")
    table.add_column("seconds", justify="right")
    table.add_column("Mbit/s", justify="right")
    table.add_column("file")
    for way, outcome in outcomes:
        table.add_row(
            str(way),
            f"{outcome.seconds:.1f}",
            f"{8 * outcome.bytes / outcome.seconds / 1e6:.1f}",
            "[green]equal[/]",
        )
    return table
