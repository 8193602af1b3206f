"""Machines that are made up, for what `xftp doctor` finds on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tuning import congestion
from xftp.cli.checks import Check
from xftp.cli.doctor import Diagnosis, diagnosis_lines
from xftp.cli.machine import Machine

ALL = " ".join(congestion.names())
EVERYTHING = 0x1FF_FFFF_FFFF
NOBODY = 65534

NET = "proc/sys/net"
AVAILABLE = f"{NET}/ipv4/tcp_available_congestion_control"
ALLOWED = f"{NET}/ipv4/tcp_allowed_congestion_control"
BTF = "sys/kernel/btf/vmlinux"
TUN = "dev/net/tun"
CLOCK = "sys/devices/system/clocksource/clocksource0"

FILES: dict[str, str | bytes] = {
    "proc/sys/kernel/osrelease": "6.18.0-test",
    "proc/self/status": f"Name:\txftp\nCapEff:\t{EVERYTHING:016x}\n",
    "proc/self/ns/net": "",
    f"{NET}/core/rmem_max": "16777216",
    f"{NET}/core/wmem_max": "16777216",
    f"{NET}/ipv4/tcp_rmem": "4096\t131072\t33554432",
    f"{NET}/ipv4/tcp_wmem": "4096\t16384\t33554432",
    f"{NET}/ipv4/tcp_window_scaling": "1",
    f"{NET}/ipv4/tcp_sack": "1",
    f"{NET}/ipv4/tcp_timestamps": "1",
    f"{NET}/ipv4/tcp_slow_start_after_idle": "0",
    f"{NET}/ipv4/tcp_congestion_control": "cubic",
    AVAILABLE: f"reno cubic {ALL}",
    ALLOWED: f"reno cubic {ALL}",
    BTF: b"\0int\0bpf_struct_ops_tcp_congestion_ops\0char\0",
    "sys/module/sch_netem/refcnt": "0",
    TUN: "",
    f"{CLOCK}/current_clocksource": "tsc",
    f"{CLOCK}/available_clocksource": "tsc hpet acpi_pm",
}
"""A machine where everything is as it should be, seen by root."""

Make = Callable[..., Machine]


def written(root: Path, files: Mapping[str, str | bytes | None]) -> None:
    for name, content in files.items():
        if content is not None:
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if isinstance(content, bytes) else content.encode())


def maker(root: Path) -> Make:
    """Give a maker of machines: `FILES` with changes (None: no such file), and other fields."""

    def machine(changes: Mapping[str, str | bytes | None] | None = None, **other: Any) -> Machine:
        written(root, FILES | dict(changes or {}))
        usual = Machine(
            root=root,
            platform="linux",
            user_id=0,
            find_command=lambda name: f"/usr/bin/{name}",
            package_version=lambda name: "1.0",
            library_problem=lambda name: None,
            refused_options=lambda: (),
            parameters_problem=lambda name: None,
            clock_resolution_s=lambda: 1e-9,
        )
        return replace(usual, **other)

    return machine


def check_of(diagnosis: Diagnosis, name: str) -> Check:
    return next(each for each in diagnosis.checks if each.name == name)


def assert_says(check: Check, words: str, command: str | None) -> None:
    """Look at what a check tells a person: some words, and a command or none."""
    assert words in check.found
    assert check.command is None if command is None else command in (check.command or "")


def capabilities(*numbers: int) -> str:
    return f"CapEff:\t{sum(1 << number for number in numbers):016x}\n"


def said_by(diagnosis: Diagnosis, width: int = 80) -> str:
    return "\n".join(diagnosis_lines(diagnosis, width))
