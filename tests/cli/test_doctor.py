"""`xftp doctor`: what it finds on machines that are made up, on this one, and what --fix does."""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from tests.cli.conftest import Client
from tuning import congestion
from tuning.bpf import host
from xftp.cli.checks import Check, Need, State
from xftp.cli.client import xftp_command
from xftp.cli.doctor import Diagnosis, Fix, diagnose, diagnosis_lines, load_algorithms
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


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Give a maker of machines: `FILES` with changes (None: no such file), and other fields."""

    def machine(changes: Mapping[str, str | bytes | None] | None = None, **other: Any) -> Machine:
        written(tmp_path, FILES | dict(changes or {}))
        usual = Machine(
            root=tmp_path,
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


def capabilities(*numbers: int) -> str:
    return f"CapEff:\t{sum(1 << number for number in numbers):016x}\n"


def said_by(diagnosis: Diagnosis, width: int = 80) -> str:
    return "\n".join(diagnosis_lines(diagnosis, width))


def said_ok(diagnosis: Diagnosis) -> bool:
    return "Everything of xftp can be used here." in said_by(diagnosis)


def test_a_machine_that_has_everything(make: Make) -> None:
    diagnosis = diagnose(make())
    assert [each for each in diagnosis.checks if each.state is not State.OK] == []
    assert all(each.command is None for each in diagnosis.checks)
    assert diagnosis.exit_status == 0
    assert replace(diagnosis, is_strict=True).exit_status == 0
    assert said_by(diagnosis).endswith("Everything of xftp can be used here.")


def test_algorithms_that_are_not_loaded_are_no_failure(make: Make) -> None:
    """One command for one missing thing."""
    machine = make({AVAILABLE: "reno cubic", ALLOWED: "reno cubic"}, user_id=NOBODY)
    diagnosis = diagnose(machine)
    assert [each.name for each in diagnosis.missing] == ["xftp's algorithms"]
    assert diagnosis.exit_status == 0
    assert replace(diagnosis, is_strict=True).exit_status == 1
    commands = [each.command for each in diagnosis.checks if each.command is not None]
    assert len(commands) == len(set(commands)) == 1
    said = said_by(diagnosis)
    assert said.endswith("Files can be transferred. Missing for tuning: xftp's algorithms.")


def test_strict_on_the_command_line() -> None:
    loose, strict = (
        CliRunner().invoke(xftp_command, ["doctor", "--json", *option])
        for option in ([], ["--strict"])
    )
    checks = [each for each in json.loads(strict.output)["checks"] if each["need"] != Need.LAB]
    assert strict.exit_code == (1 if any(each["state"] != "ok" for each in checks) else 0)
    assert loose.exit_code <= strict.exit_code
    assert json.loads(strict.output)["exit_status"] == strict.exit_code


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
    assert words in check.found
    assert check.command is None if command is None else command in (check.command or "")
    is_needed = check.need is Need.TRANSFERS and state == "missing"
    assert diagnosis.exit_status == (1 if is_needed else 0)
    assert replace(diagnosis, is_strict=True).exit_status == (0 if said_ok(diagnosis) else 1)
    assert (name in [each.name for each in diagnosis.missing]) == (state == "missing")


@pytest.mark.parametrize(
    ("changes", "other", "name", "state", "words", "command"),
    [
        ({"sys/module/sch_netem/refcnt": None}, {}, "netem", "limited", "cannot be told", None),
        ({"config": "CONFIG_NET_SCH_NETEM=y\n"}, {}, "netem", "ok", "in the kernel", None),
        (
            {"config": "CONFIG_NET_SCH_NETEM=m\n"},
            {},
            "netem",
            "missing",
            "not installed",
            "linux-modules-extra-6.18.0-test",
        ),
        (
            {"config": "CONFIG_NET_SCH_NETEM=m\n", "modules": "kernel/net/sched/sch_netem.ko.xz:"},
            {},
            "netem",
            "ok",
            "as a module",
            None,
        ),
        (
            {"config": "# CONFIG_NET_SCH_NETEM is not set\n"},
            {},
            "netem",
            "missing",
            "emulates links itself",
            None,
        ),
        ({"proc/self/ns/net": None}, {}, "network namespaces", "missing", "CONFIG_NET_NS", None),
        (
            {"proc/self/status": capabilities()},
            {},
            "network namespaces",
            "limited",
            "root only",
            None,
        ),
        ({"proc/self/status": capabilities()}, {}, "TUN", "limited", "root only", None),
        ({TUN: None}, {}, "TUN", "missing", "no /dev/net/tun", "modprobe tun"),
        ({TUN: None, "sys/class/misc/tun/dev": "10:200"}, {}, "TUN", "missing", "no", "mknod"),
        ({}, {"find_command": lambda name: None}, "mnexec", "missing", "not installed", None),
        (
            {},
            {"find_command": lambda name: "/usr/bin/apt-get" if name == "apt-get" else None},
            "ip",
            "missing",
            "not installed",
            "apt-get install --no-install-recommends iproute2",
        ),
        ({}, {"clock_resolution_s": lambda: 4e-3}, "clock", "limited", "inexact", None),
        (
            {f"{CLOCK}/current_clocksource": "hpet"},
            {},
            "clock",
            "limited",
            "slow",
            f"sh -c 'echo tsc > /{CLOCK}/current_clocksource'",
        ),
        ({f"{CLOCK}/current_clocksource": None}, {}, "clock", "ok", "unknown source", None),
    ],
)
def test_what_only_the_lab_needs_never_changes_the_exit_status(
    make: Make,
    changes: dict[str, str | None],
    other: dict[str, Any],
    name: str,
    state: str,
    words: str,
    command: str | None,
) -> None:
    config, modules = changes.get("config"), changes.get("modules")
    if config is not None:
        changes = {"boot/config-6.18.0-test": config, "sys/module/sch_netem/refcnt": None}
        changes["lib/modules/6.18.0-test/modules.dep"] = modules
    diagnosis = diagnose(make(changes, **other))
    check = check_of(diagnosis, name)
    assert (check.need, check.state) == (Need.LAB, state)
    assert words in check.found
    assert check.command is None if command is None else command in (check.command or "")
    assert diagnosis.exit_status == 0
    assert diagnosis.missing == ()


def test_the_configuration_of_a_running_kernel_is_read_compressed(make: Make) -> None:
    config = gzip.compress(b"CONFIG_NET=y\nCONFIG_NET_SCH_NETEM=m\n")
    machine = make({"proc/config.gz": config, "boot/config-6.18.0-test": "CONFIG_NET=n\n"})
    options = ("CONFIG_NET", "CONFIG_NET_SCH_NETEM", "CONFIG_NET_SCH")
    assert [machine.kernel_option(name) for name in options] == ["y", "m", "n"]
    assert make({"proc/config.gz": b"\x1f\x8b"}).kernel_option("CONFIG_NET") == "n"


def test_what_is_not_linux_is_asked_little(make: Make) -> None:
    diagnosis = diagnose(make(platform="darwin"))
    assert [each.name for each in diagnosis.checks] == ["Linux", "uvloop"]
    assert diagnosis.exit_status == 1
    assert "darwin" in said_by(diagnosis)


def test_an_ordinary_user_of_an_ordinary_machine_is_limited_only(make: Make) -> None:
    """With the algorithms loaded by root; the ceilings are those that kernels start with."""
    ordinary = {
        "proc/self/status": capabilities(),
        f"{NET}/core/rmem_max": "212992",
        f"{NET}/core/wmem_max": "212992",
        f"{NET}/ipv4/tcp_slow_start_after_idle": "1",
    }
    diagnosis = diagnose(make(ordinary, user_id=NOBODY))
    limited = {each.name for each in diagnosis.checks if each.state is State.LIMITED}
    assert {"receive ceiling", "send ceiling", "idle connections", "right to load BPF"} <= limited
    assert diagnosis.exit_status == 0
    said = said_by(diagnosis)
    assert "within the limits above" in said
    assert "  $ sudo sysctl -w net.core.rmem_max=7500000\n" in said


def test_lines_are_folded_and_commands_are_not(make: Make) -> None:
    changes = {ALLOWED: "reno", AVAILABLE: f"{ALL} reno cubic", "proc/self/status": capabilities()}
    diagnosis = diagnose(make(changes, user_id=NOBODY))
    for width in (60, 80, 100):
        lines = click.unstyle(said_by(diagnosis, width)).splitlines()
        assert all(len(line) <= width for line in lines if "  $ " not in line)
    command = check_of(diagnosis, "xftp's algorithms").command
    assert f"$ {command}" in said_by(diagnosis, 60)


def test_fix_without_root_says_the_command(make: Make) -> None:
    machine = make({AVAILABLE: "reno"}, user_id=NOBODY)
    fix = load_algorithms(machine)
    assert fix.loaded == ()
    assert fix.error == "that takes root"
    assert fix.command is not None
    assert fix.command.startswith("sudo ")
    assert fix.command.endswith("doctor --fix")
    assert f"$ {fix.command}" in said_by(diagnose(machine, fix))


def test_fix_without_root_where_nothing_has_to_be_done(make: Make) -> None:
    machine = make(user_id=NOBODY)
    assert load_algorithms(machine) == Fix()
    assert diagnose(machine, Fix()).exit_status == 0


def test_a_fix_that_failed_is_an_exit_status(make: Make) -> None:
    diagnosis = diagnose(make(), Fix(error="libbpf is needed"))
    assert diagnosis.exit_status == 1
    assert "nothing was loaded: libbpf is needed" in said_by(diagnosis)


# -- this machine -----------------------------------------------------------------------------

EXPECTED_NAMES = {
    Need.TRANSFERS: ["Linux", "uvloop", "window scaling", "SACK", "timestamps", "idle connections"],
    Need.TUNING: [
        "pacing, unsent",
        "receive ceiling",
        "send ceiling",
        "receive growth",
        "send growth",
        "congestion control",
        "xftp's algorithms",
        "initial window",
        "BPF in the kernel",
        "libbpf",
        "right to load BPF",
    ],
    Need.LAB: ["netem", "network namespaces", "TUN", "mnexec", "ip", "clock"],
}


@pytest.mark.skipif(not Path("/proc/sys/net").exists(), reason="needs Linux")
def test_the_json_of_this_machine() -> None:
    done = CliRunner().invoke(xftp_command, ["doctor", "--json"])
    values = json.loads(done.output)
    assert set(values) == {"version", "exit_status", "missing", "checks", "fix"}
    assert (values["version"], values["fix"]) == (1, None)
    lacks = [e for e in values["checks"] if e["need"] == "transfers" and e["state"] == "missing"]
    assert values["exit_status"] == done.exit_code == (1 if lacks else 0)
    for need, names in EXPECTED_NAMES.items():
        assert [each["name"] for each in values["checks"] if each["need"] == need] == names
    for each in values["checks"]:
        assert set(each) == {"name", "need", "state", "found", "command"}
        assert each["state"] in {"ok", "limited", "missing"}
        assert each["found"]


@pytest.mark.skipif(not Path("/proc/sys/net").exists(), reason="needs Linux")
@pytest.mark.parametrize("columns", [80, 120])
def test_a_pipe_gets_no_colours_and_a_line_per_check(xftp: Client, columns: int) -> None:
    done = xftp("doctor", expect=None, COLUMNS=str(columns))
    assert done.returncode in (0, 1)
    assert done.stderr == b""
    said = done.stdout.decode()
    assert "\x1b" not in said
    lines = said.splitlines()
    for names in EXPECTED_NAMES.values():
        for name in names:
            shown = re.compile(rf"  (ok|limited|missing) +{re.escape(name)}  ")
            assert sum(shown.match(line) is not None for line in lines) == 1, name
    assert all(len(line) <= columns for line in lines if "  $ " not in line)


def test_nothing_is_changed_by_looking(xftp: Client) -> None:
    before = settings_here()
    xftp("doctor", expect=None)
    assert settings_here() == before


def settings_here() -> dict[str, str]:
    """Read the settings that the checks look at, the algorithms left out: other tests load them."""
    names = [name for name in FILES if name.startswith(NET) and "congestion" not in name]
    return {name: Path("/", name).read_text() for name in names if Path("/", name).exists()}


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: loads BPF programs")
@pytest.mark.skipif(not host.KERNEL_TYPES.exists(), reason=f"needs {host.KERNEL_TYPES}")
def test_fix_as_root_loads_what_is_missing(xftp: Client) -> None:
    ours = congestion.names()
    first, *others = ours
    if any(congestion.is_loaded(name) for name in ours):
        pytest.skip("algorithms are loaded already, and others may be using them")
    with congestion.loaded([first]):
        values = json.loads(xftp("doctor", "--fix", "--json", expect=None).stdout)
        # Undone by the last one that leaves `loaded`: other tests may be in it by now.
        for name in values["fix"]["loaded"]:
            (host.PINS / "temporary" / name).mkdir(exist_ok=True)
        if first in values["fix"]["loaded"] or len(values["fix"]["loaded"]) < len(others):
            pytest.skip("another process was loading algorithms at the same time")
        assert values["fix"]["loaded"] == others
        assert values["fix"]["error"] is None
        assert values["fix"]["command"].endswith("-m tuning unload")
        states = {each["name"]: each["state"] for each in values["checks"]}
        assert states["xftp's algorithms"] == "ok"
        assert states["initial window"] == "ok"
        again = xftp("doctor", "--fix", expect=None).stdout.decode()
        assert "nothing to load" in again
