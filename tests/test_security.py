"""Every promise of SECURITY.md names its tests, and they are there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent


def promises() -> dict[str, str]:
    """Give the threats of the table, and what its last column says."""
    lines = (ROOT / "SECURITY.md").read_text().splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")]
    return {row[0]: row[-1] for row in rows[1:]}


def test_every_promise_has_tests() -> None:
    found = promises()
    assert len(found) > 10
    for threat, last in found.items():
        if last.startswith("none: "):
            continue
        named = re.findall(r"`([\w./]+)`", last)
        assert named, threat
        for name in named:
            assert (ROOT / "tests" / "server" / f"{name}.py").resolve().is_file(), name
