"""Programs of the lab on this machine, without a lab."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Any

from mininet_topos.experiments.flows import AnyFlow
from mininet_topos.experiments.outcome import FlowOutcome
from mininet_topos.running.programs import Place, program_for


class Loopback:
    """A host that is this machine."""

    ip = "127.0.0.1"

    def popen(self, argv: list[str], **options: Any) -> subprocess.Popen[Any]:
        return subprocess.Popen(argv, **options)


def run(flow: AnyFlow, scratch: Path, slot: int) -> FlowOutcome:
    made: Any = program_for(
        flow, Place(host=lambda name: Loopback(), scratch=scratch, seed=1), slot
    )
    try:
        made.prepare()
        made.begin()
        while not made.done():
            time.sleep(0.01)
        outcome: FlowOutcome = made.finish(made.client.started_s)
    finally:
        made.stop()
    return outcome
