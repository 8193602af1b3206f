"""`xftp doctor`: what it finds on machines that are made up, on this one, and what --fix does."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tests.cli.conftest import Client
from tests.cli.made_up import (
    ALL,
    ALLOWED,
    AVAILABLE,
    FILES,
    NET,
    NOBODY,
    Make,
    capabilities,
    check_of,
    said_by,
)
from tuning import congestion
from tuning.bpf import host
from xftp.cli.checks import Need, State
from xftp.cli.client import xftp_command
from xftp.cli.doctor import Fix, diagnose, load_algorithms


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
