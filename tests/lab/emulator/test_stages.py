"""The stages are pure: time and randomness are arguments."""

from __future__ import annotations

import pytest

from tests.test_architecture import ROOT, imports

STAGES = ("acks", "direction", "loss", "queue", "schedule", "counters", "recorder")
CLOCKS_AND_DEVICES = {"asyncio", "os", "select", "selectors", "socket", "subprocess", "time"}


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_has_no_clock_and_no_device(stage: str) -> None:
    path = ROOT / "mininet_topos" / "emulator" / f"{stage}.py"
    assert not {name.split(".")[0] for name in imports(path)} & CLOCKS_AND_DEVICES
