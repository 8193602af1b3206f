"""What `xftp doctor` says that transfers and tuning need and lack, on machines that are made up."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.cli.made_up import (
    ALL,
    ALLOWED,
    AVAILABLE,
    BTF,
    NET,
    NOBODY,
    Make,
    assert_says,
    capabilities,
    check_of,
    said_by,
)
from xftp.cli.checks import Need
from xftp.cli.doctor import Diagnosis, diagnose


def said_ok(diagnosis: Diagnosis) -> bool:
    return "Everything of xftp can be used here." in said_by(diagnosis)


@pytest.mark.parametrize(
    ("changes", "other", "name", "state", "words", "command"),
    [
        ({"proc/sys/kernel/osrelease": "5.15.0"}, {}, "Linux", "limited", "5.19", None),
        ({"proc/sys/kernel/osrelease": "5.4.1"}, {}, "Linux", "limited", "5.6", None),
        ({"proc/sys/kernel/osrelease": None}, {}, "Linux", "limited", "unknown version", None),
        ({}, {"package_version": lambda name: None}, "uvloop", "limited", "asyncio", "pip install"),
        (
            {f"{NET}/ipv4/tcp_window_scaling": "0"},
            {},
            "window scaling",
            "missing",
            "64 KiB",
            "sysctl -w net.ipv4.tcp_window_scaling=1",
        ),
        (
            {f"{NET}/ipv4/tcp_sack": "0"},
            {},
            "SACK",
            "limited",
            "off",
            "sysctl -w net.ipv4.tcp_sack=1",
        ),
        ({f"{NET}/ipv4/tcp_timestamps": "2"}, {}, "timestamps", "ok", "on", None),
        ({f"{NET}/ipv4/tcp_timestamps": None}, {}, "timestamps", "limited", "read", None),
        ({f"{NET}/ipv4/tcp_timestamps": "what"}, {}, "timestamps", "limited", "read", None),
        (
            {f"{NET}/ipv4/tcp_slow_start_after_idle": "1"},
            {},
            "idle connections",
            "limited",
            "pause",
            "sysctl -w net.ipv4.tcp_slow_start_after_idle=0",
        ),
        (
            {},
            {"refused_options": lambda: ("pacing_rate_bps",)},
            "pacing, unsent",
            "missing",
            "pacing_rate_bps",
            None,
        ),
        (
            {f"{NET}/core/rmem_max": "7500000"},
            {},
            "receive ceiling",
            "ok",
            "7.5 MB, enough for hts-geo over 2 connections",
            None,
        ),
        (
            {f"{NET}/core/rmem_max": "3749999"},
            {},
            "receive ceiling",
            "limited",
            "or 5 connections",
            "sysctl -w net.core.rmem_max=7500000",
        ),
        (
            {f"{NET}/core/wmem_max": "212992"},
            {},
            "send ceiling",
            "limited",
            "213 kB; hts-geo over 2 connections needs 7.5 MB",
            "sysctl -w net.core.wmem_max=7500000",
        ),
        ({f"{NET}/core/wmem_max": None}, {}, "send ceiling", "limited", "cannot be read", None),
        (
            {f"{NET}/ipv4/tcp_rmem": "4096\t131072\t6291456"},
            {},
            "receive growth",
            "limited",
            "up to 6.29 MB",
            'sysctl -w net.ipv4.tcp_rmem="4096 131072 15000000"',
        ),
        ({f"{NET}/ipv4/tcp_wmem": "4096"}, {}, "send growth", "limited", "cannot be read", None),
        ({AVAILABLE: None}, {}, "congestion control", "missing", "does not tell", None),
        ({ALLOWED: "reno"}, {}, "congestion control", "ok", "cubic only for root", None),
        (
            {ALLOWED: f"reno {ALL}", "proc/self/status": capabilities()},
            {"user_id": NOBODY},
            "congestion control",
            "limited",
            "cubic only for root",
            f'sudo sysctl -w net.ipv4.tcp_allowed_congestion_control="reno {ALL} cubic"',
        ),
        (
            {ALLOWED: "reno cubic", "proc/self/status": capabilities()},
            {"user_id": NOBODY},
            "xftp's algorithms",
            "limited",
            "only for root",
            f'sudo sysctl -w net.ipv4.tcp_allowed_congestion_control="reno cubic {ALL}"',
        ),
        ({AVAILABLE: "reno cubic"}, {}, "xftp's algorithms", "missing", "none of", "doctor --fix"),
        (
            {AVAILABLE: f"reno cubic {ALL.removeprefix('xftp_abc ')}"},
            {},
            "xftp's algorithms",
            "missing",
            "not abc",
            "doctor --fix",
        ),
        (
            {AVAILABLE: "reno cubic"},
            {"objects": Path("/nonexistent")},
            "xftp's algorithms",
            "missing",
            "not compiled",
            "make bpf",
        ),
        ({AVAILABLE: "reno"}, {}, "initial window", "limited", "by a route's initcwnd", None),
        (
            {AVAILABLE: "reno", "proc/self/status": capabilities()},
            {"user_id": NOBODY},
            "initial window",
            "missing",
            "with xftp's algorithms only",
            None,
        ),
        ({AVAILABLE: "reno", BTF: None}, {}, "xftp's algorithms", "missing", "takes none", None),
        (
            {},
            {"parameters_problem": lambda name: f"{name} is wrong"},
            "initial window",
            "missing",
            "xftp_abc is wrong",
            None,
        ),
        (
            {},
            {"parameters_problem": lambda name: "may not be opened", "user_id": NOBODY},
            "initial window",
            "limited",
            "may not be opened",
            None,
        ),
        ({BTF: None}, {}, "BPF in the kernel", "missing", "CONFIG_DEBUG_INFO_BTF", None),
        ({BTF: b"\0int\0"}, {}, "BPF in the kernel", "missing", "CONFIG_BPF_JIT", None),
        (
            {AVAILABLE: "reno"},
            {"library_problem": lambda name: f"{name}: no such file"},
            "libbpf",
            "missing",
            "libbpf.so.1: no such file",
            "apt-get install --no-install-recommends libbpf1",
        ),
        (
            {},
            {
                "library_problem": lambda name: "no such file",
                "find_command": lambda name: "/usr/bin/dnf" if name == "dnf" else None,
            },
            "libbpf",
            "limited",
            "next boot",
            "dnf install libbpf",
        ),
        ({}, {"user_id": NOBODY}, "right to load BPF", "limited", "root only", None),
        ({AVAILABLE: "reno"}, {"user_id": NOBODY}, "right to load BPF", "limited", "only", None),
        (
            {"proc/self/status": capabilities(12, 39)},
            {},
            "right to load BPF",
            "ok",
            "root",
            None,
        ),
        (
            {"proc/self/status": capabilities(), AVAILABLE: "reno"},
            {},
            "right to load BPF",
            "missing",
            "CAP_BPF",
            None,
        ),
    ],
)
def test_what_the_product_needs(
    make: Make,
    changes: dict[str, str | None],
    other: dict[str, Any],
    name: str,
    state: str,
    words: str,
    command: str | None,
) -> None:
    diagnosis = diagnose(make(changes, **other))
    check = check_of(diagnosis, name)
    assert check.state == state
    assert_says(check, words, command)
    is_needed = check.need is Need.TRANSFERS and state == "missing"
    assert diagnosis.exit_status == (1 if is_needed else 0)
    assert replace(diagnosis, is_strict=True).exit_status == (0 if said_ok(diagnosis) else 1)
    assert (name in [each.name for each in diagnosis.missing]) == (state == "missing")
