"""What the tests of the BPF programs need of the machine."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tuning.bpf import host


def missing() -> str | None:
    """Say what this machine lacks for these tests."""
    if os.geteuid() != 0:
        return "needs root: loads BPF programs and makes network namespaces"
    if not host.KERNEL_TYPES.exists():
        return f"needs a kernel with {host.KERNEL_TYPES}"
    if not Path("/dev/net/tun").exists() or shutil.which("ip") is None:
        return "needs /dev/net/tun and the ip command"
    return None


needs_bpf = [
    pytest.mark.root,
    pytest.mark.skipif(missing() is not None, reason=missing() or ""),
]
