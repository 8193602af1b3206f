"""What each knob of the sockets does on a long path: `python -m bench.knobs`.

The real xftpd and xftp, each in a network namespace of its own, with the emulated path between
them; new namespaces for every download, so that none learns from another.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from bench import peers
from bench.__main__ import positive
from bench.emulated_path import SERVER, Link, path
from bench.processes import BenchError
from bench.report import machine
from bench.runner import same_content, workplace, write_random
from mininet_topos.links import PacketLoss, Queue, Way
from tuning import congestion
from tuning.errors import TuningError

FORMAT_VERSION = 1

DOWN_BPS, UP_BPS, RTT_S = 50e6, 5e6, 0.6
"""The profile hts-geo."""

SIZES_BYTES = (1_000_000, 20_000_000)
TIMEOUT_S = 240
SPARE_BYTES = 1 << 28

SYSCTLS = {
    "net.ipv4.tcp_rmem": "4096 131072 6291456",
    "net.ipv4.tcp_wmem": "4096 16384 4194304",
    "net.ipv4.tcp_no_metrics_save": "1",
}
"""Of the namespaces only: Linux's own limits of automatic buffers on a machine of 4 GB or more
(tcp(7)), and no memory of earlier connections."""


@dataclass(frozen=True, slots=True)
class Knob:
    """One way of setting the sockets, as a user gives it to `xftp get`."""

    name: str
    arguments: tuple[str, ...]


BASELINE = Knob("nothing: 1 connection, cubic, system buffers", ("-n1", "--cc", "cubic"))

KNOBS = (
    BASELINE,
    Knob("-n 8", ("-n8", "--cc", "cubic")),
    Knob("--rcvbuf 256K", ("-n1", "--cc", "cubic", "--rcvbuf", "256K")),
    Knob("--rcvbuf 16M", ("-n1", "--cc", "cubic", "--rcvbuf", "16M")),
    Knob("--sndbuf 256K", ("-n1", "--cc", "cubic", "--sndbuf", "256K")),
    Knob("--sndbuf 16M", ("-n1", "--cc", "cubic", "--sndbuf", "16M")),
    Knob(
        "--rcvbuf 16M --sndbuf 16M",
        ("-n1", "--cc", "cubic", "--rcvbuf", "16M", "--sndbuf", "16M"),
    ),
    Knob("--cc xftp_abc", ("-n1", "--cc", "xftp_abc")),
    Knob(
        "--cc xftp_abc --initial-window 100",
        ("-n1", "--cc", "xftp_abc", "--initial-window", "100"),
    ),
    Knob(
        "the same, --rcvbuf 16M",
        ("-n1", "--cc", "xftp_abc", "--initial-window", "100", "--rcvbuf", "16M"),
    ),
    Knob("--rate 50mbit", ("-n1", "--rate", "50mbit")),
    Knob("--profile hts-geo", ("-n1", "--profile", "hts-geo")),
    Knob("--profile hts-geo -n 8", ("-n8", "--profile", "hts-geo")),
)


@dataclass(frozen=True, slots=True)
class Run:
    """One download."""

    data_s: float
    """From the first data connection to the end of the data, as xftp reports it."""

    whole_s: float
    """From the start of the program xftp to its end, the control connection included."""

    notices: str
    """What xftp said on standard error: what was not granted."""

    report: dict[str, Any]
    """xftp's own."""


Results = dict[tuple[Knob, int], list[Run]]


def ways(loss: float) -> tuple[Way, Way]:
    """Give the way to the server and the way to the client; each queue holds rate x RTT."""

    def way(rate_bps: float) -> Way:
        return Way(
            delay_s=RTT_S / 2,
            rate_bps=rate_bps,
            queue=Queue(bytes=round(rate_bps / 8 * RTT_S)),
            loss=PacketLoss(probability=loss) if loss else None,
        )

    return way(UP_BPS), way(DOWN_BPS)


def prepare(link: Link) -> None:
    """Set both namespaces as SYSCTLS says."""
    for namespace in (link.client, link.server):
        namespace.run("sysctl", "-qw", *(f"{name}={value}" for name, value in SYSCTLS.items()))


def download(link: Link, place: peers.Place, source: Path, arguments: Sequence[str]) -> Run:
    """Fetch a file over the path with the real programs, and compare it with its source.

    Raises BenchError.
    """
    target = place.scratch / f"arrived-{source.name}"
    try:
        with link.server.entered(), peers.xftpd(place, SERVER) as server, link.client.entered():
            url = f"ftp://{SERVER}:{server.port}/{source.relative_to(place.root)}"
            # --no-memory: paths are remembered by address, and all of these have the same.
            always = ["get", "--json", "--no-memory", "--no-verify"]
            command = [peers.find("xftp"), *always, *arguments, "-o", str(target), url]
            run = _run(command, place)
        if not same_content(source, target):
            raise BenchError(f"{' '.join(arguments)}: what arrived is not what was sent")
        return run
    finally:
        target.unlink(missing_ok=True)


def _run(command: Sequence[str], place: peers.Place) -> Run:
    begin_s = time.monotonic()
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env=dict(place.environment),
            timeout=TIMEOUT_S,
        )
    except subprocess.TimeoutExpired as error:
        raise BenchError(f"{shlex.join(command)}: not done after {TIMEOUT_S} s") from error
    whole_s = time.monotonic() - begin_s
    if done.returncode != 0:
        raise BenchError(
            f"{shlex.join(command)}: ended with {done.returncode}: {done.stderr.strip()[-2000:]}"
        )
    report = json.loads(done.stdout)
    return Run(report["seconds"], whole_s, done.stderr.strip(), report)


def run_all(
    knobs: Sequence[Knob],
    place: peers.Place,
    loss: float,
    repeat: int,
    say: Callable[[str], None],
) -> Results:
    """Measure every knob `repeat` times with every size; the rounds interleave them."""
    results: Results = {}
    for size_bytes in SIZES_BYTES:
        write_random(place.root / _name(size_bytes), size_bytes)
    for round_number in range(1, repeat + 1):
        for knob in knobs:
            for size_bytes in SIZES_BYTES:
                say(f"round {round_number} of {repeat}: {knob.name}, {_name(size_bytes)}")
                with path(*ways(loss), seed=round_number) as link:
                    prepare(link)
                    run = download(link, place, place.root / _name(size_bytes), knob.arguments)
                results.setdefault((knob, size_bytes), []).append(run)
    return results


def _name(size_bytes: int) -> str:
    return f"{size_bytes // 10**6} MB"


# -- what is printed -------------------------------------------------------------------------------

HEADINGS = (
    "knob",
    *(f"{_name(size)}{what}" for size in SIZES_BYTES for what in (", s", "", " all")),
)


def rows(results: Results) -> list[list[str]]:
    """Give the cells: seconds of the data, and how many times faster than the baseline.

    The ratio is given for the data and for the whole command.
    """
    knobs = list(dict.fromkeys(knob for knob, _ in results))
    return [
        [knob.name, *(cell for size in SIZES_BYTES for cell in _cells(results, knob, size))]
        for knob in knobs
    ]


def _cells(results: Results, knob: Knob, size_bytes: int) -> list[str]:
    runs, base = results[knob, size_bytes], results[BASELINE, size_bytes]
    data_s, base_s = (median(run.data_s for run in some) for some in (runs, base))
    whole_s, base_whole_s = (median(run.whole_s for run in some) for some in (runs, base))
    return [f"{data_s:.1f}", f"{base_s / data_s:.2f}", f"{base_whole_s / whole_s:.2f}"]


def title(loss: float, repeat: int) -> str:
    """Say what was measured, where."""
    return (
        f"{DOWN_BPS / 1e6:g}/{UP_BPS / 1e6:g} Mbit/s, RTT {RTT_S * 1e3:g} ms, queue 1 BDP, "
        f"loss {loss:.3%}, median of {repeat}. {machine()}"
    )


def terminal_table(results: Results, heading: str) -> Table:
    """Make the table for a person."""
    table = Table(title=heading)
    for number, name in enumerate(HEADINGS):
        table.add_column(name, justify="right" if number else "left", no_wrap=True)
    for cells in rows(results):
        table.add_row(*cells)
    return table


def markdown_table(results: Results, heading: str) -> str:
    """Make the table as docs/tuning.md has it."""
    lines = [heading, "", "| " + " | ".join(HEADINGS) + " |", "|---|" + "---:|" * len(HEADINGS[1:])]
    lines += ["| " + " | ".join(cells) + " |" for cells in rows(results)]
    return "\n".join(lines)


def as_json(results: Results, heading: str) -> dict[str, Any]:
    """Give every run, with xftp's reports."""
    return {
        "format": FORMAT_VERSION,
        "what": heading,
        "runs": [
            {"knob": knob.name, "arguments": knob.arguments, "bytes": size_bytes, **asdict(run)}
            for (knob, size_bytes), runs in results.items()
            for run in runs
        ],
    }


# -- the command -----------------------------------------------------------------------------------


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.knobs", description=__doc__)
    add = parser.add_argument
    add("--loss", type=float, default=0.0, metavar="P", help="probability, as 0.001; both ways")
    add("--repeat", type=positive, default=1, metavar="R", help="rounds; the median counts")
    add("--only", metavar="REGEX", help="only knobs such as '--rcvbuf', and the baseline")
    add("--directory", type=Path, default=Path("/dev/shm"), help="best one that is in memory")
    add("--json", type=Path, metavar="FILE", help="also write every run to FILE")
    add("--markdown", action="store_true", help="print the table as docs/tuning.md has it")
    options = parser.parse_args()
    if not 0 <= options.loss < 1:
        parser.error(f"--loss {options.loss}: a probability is from 0 to below 1")
    return options


def missing() -> str | None:
    """Say what this machine lacks for an emulated path."""
    if os.geteuid() != 0:
        return "needs root: loads BPF programs and makes network namespaces"
    if not Path("/dev/net/tun").exists() or shutil.which("ip") is None:
        return "needs /dev/net/tun and the ip command (package iproute2)"
    return None


def measure(options: argparse.Namespace) -> None:
    """Measure and print. Raises BenchError, TuningError."""
    reason = missing()
    if reason is not None:
        raise BenchError(reason)
    others = [knob for knob in KNOBS[1:] if re.search(options.only or "", knob.name)]
    # Not a terminal: wide enough for every column rather than folded to 80.
    console = Console() if sys.stdout.isatty() else Console(width=160)
    progress = Console(stderr=True)
    with (
        congestion.loaded(),
        workplace(options.directory, SPARE_BYTES) as place,
        progress.status("") as status,
    ):
        knobs = (BASELINE, *others)
        results = run_all(knobs, place, options.loss, options.repeat, status.update)
    heading = title(options.loss, options.repeat)
    if options.markdown:
        print(markdown_table(results, heading))
    else:
        console.print(terminal_table(results, heading))
    for (knob, size_bytes), runs in results.items():
        for notice in dict.fromkeys(run.notices for run in runs if run.notices):
            progress.print(f"{knob.name}, {_name(size_bytes)}: {notice}", markup=False)
    if options.json:
        options.json.write_text(json.dumps(as_json(results, heading), indent=2) + "\n")


def main() -> int:
    options = parse_arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        measure(options)
    except (BenchError, TuningError) as error:
        print(f"The benchmark stopped: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
