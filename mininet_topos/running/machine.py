"""What must be known of the machine to judge a result."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).parents[2]

_SYSCTLS = (
    "net/core/rmem_max",
    "net/core/wmem_max",
    "net/ipv4/tcp_rmem",
    "net/ipv4/tcp_wmem",
    "net/ipv4/tcp_congestion_control",
    "net/ipv4/tcp_available_congestion_control",
    "net/ipv4/tcp_allowed_congestion_control",
)
"""Of the host; those of the namespaces are in each run's description of its lab."""

_VERSION_COMMANDS = {
    "curl": ("--version",),
    "vsftpd": ("-v",),
    "lftp": ("--version",),
    "aria2c": ("--version",),
    "globus-url-copy": ("-version",),
    "mnexec": ("-v",),
}

_PACKAGES = ("xftp", "aioftp", "mininet", "pyroute2", "matplotlib", "uvloop")


def describe() -> dict[str, Any]:
    """Give kernel, processor, settings, revision and the versions of all programs."""
    return {
        "kernel": platform.release(),
        "machine": platform.machine(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "python": platform.python_version(),
        "sysctls": {name.replace("/", "."): _sysctl(name) for name in _SYSCTLS},
        "revision": revision(),
        "packages": {name: _package(name) for name in _PACKAGES},
        "programs": {name: _version(name) for name in _VERSION_COMMANDS},
    }


@cache
def revision() -> str:
    """Give the revision of the source tree, with "+" if it was changed since; "" outside of one."""
    if not (_ROOT / ".git").exists():
        return ""
    head = _output("git", "-C", str(_ROOT), "rev-parse", "--short=12", "HEAD")
    changed = _output("git", "-C", str(_ROOT), "status", "--porcelain", "--untracked-files=no")
    return head + ("+" if head and changed else "")


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())


def _sysctl(name: str) -> str:
    try:
        return Path("/proc/sys", name).read_text().strip()
    except OSError:
        return ""


def _package(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


@cache
def _version(program: str) -> str:
    """Give the first line a program says of its version; "" where it is not installed."""
    directories = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    path = shutil.which(program, path=directories)
    if path is None:
        return ""
    if program == "vsftpd":  # it says its version on its standard input
        return _vsftpd_version(path)
    lines = _output(path, *_VERSION_COMMANDS[program]).splitlines()
    return next((line.strip() for line in lines if line.strip()), "installed")


def _vsftpd_version(path: str) -> str:
    read_end, write_end = os.pipe()
    with os.fdopen(read_end) as said:
        try:
            subprocess.run([path, "-v"], stdin=write_end, timeout=10, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return "installed"
        finally:
            os.close(write_end)
        return said.readline().strip() or "installed"


def _output(*command: str) -> str:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()
