"""Whether the end of a transfer takes longer than its middle: `python -m bench.tail`.

The real xftpd and a session of the library, each in a network namespace of its own, over an
emulated path that loses packets; new namespaces and other losses for every download. What is told
is how long the last 1% of the file took, and how long the others did, as a distribution.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median

import uvloop

import xftp
from bench import peers
from bench.__main__ import positive
from bench.emulated_path import SERVER, path
from bench.knobs import prepare
from bench.processes import BenchError
from bench.report import machine
from bench.runner import same_content, workplace, write_random
from mininet_topos.errors import LabError
from mininet_topos.links import PacketLoss, Queue, Way

PARTS = 100
FIRST_COMPARED = 50
"""Parts before this one may be of slow start."""

TIMEOUT_S = 300
SPARE_BYTES = 1 << 28


class Clock:
    """Notes when each hundredth of the file was there."""

    def __init__(self) -> None:
        self.times_s: list[float] = []
        self._total = self._moved = 0

    def started(self, total_bytes: int | None, offset: int) -> None:
        self._total = total_bytes or 0

    def moved(self, connection: int, size: int) -> None:
        self._moved += size
        while self._moved * PARTS >= self._total * (len(self.times_s) + 1):
            self.times_s.append(asyncio.get_running_loop().time())
            if len(self.times_s) == PARTS:
                return


async def fetch(url: str, target: str, connections: int) -> dict[str, object]:
    """Download; give the times of the hundredths and the report."""
    clock = Clock()
    options = xftp.Options(connections=connections)
    async with xftp.connect(url, options=options) as session:
        report = await session.get(url.rpartition("/")[2], target, progress=clock)
    if report is None:
        raise BenchError(f"{url}: nothing was moved")
    return {"times_s": clock.times_s, "report": report.as_json()}


@dataclass(frozen=True)
class Run:
    """One download."""

    last_s: float
    """Of the last 1%."""

    others_s: list[float]
    """Of those that it is compared with."""

    whole_s: float
    repeated_bytes: int
    lost_connections: int


def run(options: argparse.Namespace, place: peers.Place, seed: int) -> Run:
    """Download once over a new path. Raises BenchError."""
    source, target = place.root / "file", place.scratch / "arrived"
    one_way_s = options.rtt / 2

    def way(rate_bps: float) -> Way:
        return Way(
            delay_s=one_way_s,
            rate_bps=rate_bps,
            queue=Queue(bytes=round(rate_bps / 8 * options.rtt)),
            loss=PacketLoss(probability=options.loss) if options.loss else None,
        )

    with path(way(options.up), way(options.down), seed=seed) as link:
        prepare(link)
        with link.server.entered(), peers.xftpd(place, SERVER) as server, link.client.entered():
            url = f"ftp://{SERVER}:{server.port}/file"
            command = [sys.executable, "-m", "bench.tail", "--one", url, str(target)]
            command += ["-n", str(options.connections)]
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
            )
    if done.returncode != 0:
        raise BenchError(f"{url}: {done.stderr.strip()[-2000:]}")
    if not same_content(source, target):
        raise BenchError(f"{url}: what arrived is not what was sent")
    target.unlink()
    told = json.loads(done.stdout)
    times_s, report = told["times_s"], told["report"]
    parts_s = [after - before for before, after in pairwise(times_s)]
    return Run(
        parts_s[-1],
        parts_s[FIRST_COMPARED:-1],
        report["seconds"],
        report["repeated_bytes"],
        report["lost_connections"],
    )


def quantiles(values: list[float]) -> str:
    """Show least, median, 90% and largest in milliseconds."""
    ordered = sorted(values)
    at = [0, len(ordered) // 2, min(len(ordered) - 1, len(ordered) * 9 // 10), -1]
    return " / ".join(f"{ordered[index] * 1e3:.0f}" for index in at)


def measure(options: argparse.Namespace) -> None:
    """Measure and print. Raises BenchError."""
    runs: list[Run] = []
    with workplace(options.directory, SPARE_BYTES) as place:
        write_random(place.root / "file", options.size)
        for number in range(1, options.repeat + 1):
            runs.append(run(options, place, options.seed + number))
            print(f"run {number}: {runs[-1].last_s * 1e3:.0f} ms", file=sys.stderr, flush=True)
    within = sum(each.last_s <= max(each.others_s) + options.rtt for each in runs)
    strictly = sum(each.last_s <= median(each.others_s) + options.rtt for each in runs)
    print(
        f"{options.down / 1e6:g}/{options.up / 1e6:g} Mbit/s, RTT {options.rtt * 1e3:g} ms, loss "
        f"{options.loss:.2%}, {options.size} bytes, {options.connections} connections, "
        f"{len(runs)} runs. {machine()}"
    )
    print("1% of the file, ms: least / median / 90% / largest")
    print(f"  the last:   {quantiles([each.last_s for each in runs])}")
    print(f"  the others: {quantiles([s for each in runs for s in each.others_s])}")
    print(f"last <= slowest other of its run + 1 RTT: {within} of {len(runs)} runs")
    print(f"last <= median other of its run + 1 RTT: {strictly} of {len(runs)} runs")
    print(f"whole, s: {median(each.whole_s for each in runs):.2f} (median)")
    repeated = median(each.repeated_bytes for each in runs) / options.size
    lost = sum(each.lost_connections for each in runs)
    print(f"arrived twice: {repeated:.2%} of the file (median); connections lost: {lost}")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.tail", description=__doc__)
    add = parser.add_argument
    add("--down", type=float, default=50e6, metavar="BPS", help="to the client")
    add("--up", type=float, default=5e6, metavar="BPS", help="to the server")
    add("--rtt", type=float, default=0.6, metavar="S")
    add("--loss", type=float, default=0.01, metavar="P", help="both ways")
    add("--size", type=positive, default=10_000_000, metavar="BYTES")
    add("-n", "--connections", type=positive, default=8)
    add("--repeat", type=positive, default=30, metavar="R")
    add("--seed", type=int, default=0, metavar="S", help="of the losses")
    add("--directory", type=Path, default=Path("/dev/shm"))
    add("--one", nargs=2, metavar=("URL", "TARGET"), help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> int:
    options = parse_arguments()
    try:
        if options.one:
            url, target = options.one
            print(json.dumps(uvloop.run(fetch(url, target, options.connections))))
        else:
            measure(options)
    except (BenchError, LabError, xftp.XftpError) as error:
        print(f"The measurement stopped: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
