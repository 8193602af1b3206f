"""What this machine allows the runs to do."""

from __future__ import annotations

import os
import shutil
import subprocess

from .scenario import Range


def allowed_here(*, with_long: bool) -> Range:
    """Tell what may be drawn here."""
    return Range(with_long=with_long, with_root=_may_mount())


def _may_mount() -> bool:
    if os.geteuid() != 0 or shutil.which("unshare") is None or shutil.which("nsenter") is None:
        return False
    mount = "mount -t tmpfs tmpfs /mnt"
    command = ["unshare", "--mount", "--propagation", "private", "sh", "-c", mount]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0
