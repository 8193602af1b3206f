"""What can be seen of a machine without changing it: files, a throwaway socket, loadable code."""

from __future__ import annotations

import ctypes
import gzip
import importlib.metadata
import importlib.util
import os
import re
import shutil
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tuning import congestion
from tuning.bpf import host
from tuning.errors import TuningError
from tuning.sockopts import SocketTuning

CAP_NET_ADMIN, CAP_SYS_ADMIN, CAP_BPF = 12, 21, 39
"""Numbers of capabilities (linux/capability.h)."""

_PROBED = SocketTuning(pacing_rate_bps=8e6, notsent_lowat_bytes=65536)
_PROBED_WINDOW_SEGMENTS = 20


def find_command(name: str) -> str | None:
    """Give the path of a command, those for administrators included."""
    return shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")


def package_version(name: str) -> str | None:
    """Give the version of a Python package that can be imported, None if it cannot."""
    if importlib.util.find_spec(name) is None:
        return None
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "of unknown version"


def library_problem(name: str) -> str | None:
    """Say why a shared library cannot be loaded, None if it can."""
    try:
        ctypes.CDLL(name)
    except OSError as error:
        return str(error)
    return None


def refused_options() -> tuple[str, ...]:
    """Name the options without privilege that a socket of this machine refuses."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
        return tuple(difference.option for difference in _PROBED.apply(sock))


def parameters_problem(algorithm: str) -> str | None:
    """Say why a socket with this algorithm cannot be told its initial window, None if it can."""
    try:
        with (
            socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock,
            congestion.ParameterMap() as parameters,
        ):
            congestion.choose(sock, algorithm)
            parameters.set_initial_window(sock, _PROBED_WINDOW_SEGMENTS)
    except TuningError as error:
        return str(error)
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A machine as the checks see it; the defaults are this one, root lets tests make another."""

    root: Path = Path("/")
    """Where proc, sys, dev, lib and boot are."""

    platform: str = sys.platform
    """As sys.platform has it."""

    user_id: int = field(default_factory=os.geteuid)
    """The effective user."""

    find_command: Callable[[str], str | None] = find_command
    """Gives the path of a command."""

    package_version: Callable[[str], str | None] = package_version
    library_problem: Callable[[str], str | None] = library_problem
    refused_options: Callable[[], tuple[str, ...]] = refused_options
    parameters_problem: Callable[[str], str | None] = parameters_problem

    objects: Path = host.OBJECTS
    """The compiled BPF programs of this package."""

    clock_resolution_s: Callable[[], float] = lambda: time.get_clock_info("monotonic").resolution
    """Of the monotonic clock."""

    @property
    def is_root(self) -> bool:
        """Whether commands for root can be typed as they are."""
        return self.user_id == 0

    def path(self, name: str) -> Path:
        """Give the place of an absolute path of this machine."""
        return self.root / name.lstrip("/")

    def text(self, name: str) -> str | None:
        """Read a file of a few lines; None if it cannot be read."""
        try:
            return self.path(name).read_text(errors="replace").strip()
        except OSError:
            return None

    def sysctl(self, name: str) -> str | None:
        """Read a sysctl; None if there is none."""
        return self.text(f"/proc/sys/{name.replace('.', '/')}")

    def words(self, name: str) -> tuple[str, ...]:
        """Read a sysctl that is a list of words; none if there is none."""
        return tuple((self.sysctl(name) or "").split())

    def integers(self, name: str) -> tuple[int, ...]:
        """Read a sysctl of whole numbers; none if it has something else."""
        with suppress(ValueError):
            return tuple(int(word) for word in self.words(name))
        return ()

    @property
    def release(self) -> str:
        """The kernel's release, as `uname -r` has it; "" if it cannot be told."""
        return self.sysctl("kernel.osrelease") or ""

    @property
    def kernel_version(self) -> tuple[int, int]:
        """The first two numbers of the release; (0, 0) if it cannot be told."""
        found = re.match(r"([0-9]+)\.([0-9]+)", self.release)
        return (int(found[1]), int(found[2])) if found else (0, 0)

    def kernel_option(self, name: str) -> str | None:
        """Give what the kernel was built with: "y", "m", "n"; None if it cannot be told."""
        config = self.text(f"/boot/config-{self.release}")
        with suppress(OSError, EOFError):
            config = gzip.decompress(self.path("/proc/config.gz").read_bytes()).decode()
        if config is None:
            return None
        found = re.search(rf"^{name}=(.*)$", config, re.M)
        return found[1] if found else "n"

    def describes(self, type_name: str) -> bool | None:
        """Tell whether the kernel's types have one of that name; None if it describes none."""
        try:
            return f"\0{type_name}\0".encode() in self.path(str(host.KERNEL_TYPES)).read_bytes()
        except OSError:
            return None

    def has_capability(self, number: int) -> bool:
        """Tell whether this process has a capability, by number."""
        found = re.search(r"^CapEff:\s*([0-9a-fA-F]+)$", self.text("/proc/self/status") or "", re.M)
        return found is not None and bool(int(found[1], 16) >> number & 1)
