"""How long many small files take over a long path: `python -m bench.many`.

The real programs, each in a network namespace of its own: 100 files of 50 KiB from the server over
a GEO link (50/5 Mbit/s, 600 ms), as `xftp mirror` moves them, cold and anonymous.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench import peers
from bench.__main__ import positive
from bench.emulated_path import SERVER, path
from bench.processes import BenchError
from bench.runner import workplace
from mininet_topos.links import Queue, Way

DOWN_BPS, UP_BPS, DELAY_S = 50e6, 5e6, 0.3
QUEUE_BYTES = round(DOWN_BPS * 2 * DELAY_S / 8)
TIMEOUT_S = 600
SPARE_BYTES = 1 << 28


def measure(
    place: peers.Place, options: Sequence[str], folder: Path
) -> tuple[float, dict[str, object]]:
    """Mirror once over a new link; give the seconds of the whole process, and its summary."""
    queue = Queue(bytes=QUEUE_BYTES)
    up = Way(delay_s=DELAY_S, rate_bps=UP_BPS, queue=queue)
    down = Way(delay_s=DELAY_S, rate_bps=DOWN_BPS, queue=queue)
    with (
        path(up, down) as link,
        link.server.entered(),
        peers.xftpd(place, SERVER) as server,
        link.client.entered(),
        tempfile.TemporaryDirectory(dir=folder) as target,
    ):
        command = [peers.find("xftp"), "mirror", "--json", "--no-memory", *options]
        command += [f"ftp://{SERVER}:{server.port}/many", target]
        began_s = time.monotonic()
        done = subprocess.run(
            command,
            capture_output=True,
            env=dict(place.environment),
            timeout=TIMEOUT_S,
            check=False,
        )
        seconds = time.monotonic() - began_s
        if done.returncode:
            raise BenchError(done.stderr.decode(errors="replace"))
        summary = json.loads(done.stdout.splitlines()[-1])["summary"]
        same = all(
            (Path(target) / file.name).read_bytes() == file.read_bytes()
            for file in (place.root / "many").iterdir()
        )
        if not same:
            raise BenchError("what arrived is not what was sent")
        return seconds, summary


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print what came of it."""
    parser = argparse.ArgumentParser(prog="python -m bench.many", description=__doc__)
    parser.add_argument("--files", type=positive, default=100)
    parser.add_argument("--bytes", type=positive, default=51_200, help="of each")
    parser.add_argument("options", nargs="*", help="for xftp mirror, behind --")
    chosen = parser.parse_args(arguments)
    with (
        tempfile.TemporaryDirectory() as folder,
        workplace(Path(folder), SPARE_BYTES) as place,
    ):
        (place.root / "many").mkdir()
        for number in range(chosen.files):
            (place.root / "many" / f"file{number}").write_bytes(os.urandom(chosen.bytes))
        seconds, summary = measure(place, chosen.options, Path(folder))
    at_rate_s = chosen.files * chosen.bytes * 8 / DOWN_BPS
    print(
        f"{chosen.files} files of {chosen.bytes} bytes: {seconds:.2f} s, "
        f"of which {summary['seconds']:.2f} s after the start of the program; "
        f"{at_rate_s:.2f} s at line rate"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
