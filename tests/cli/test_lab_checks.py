"""What `xftp doctor` says of the lab, on machines that are made up."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cli.made_up import CLOCK, TUN, Make, assert_says, capabilities, check_of
from xftp.cli.checks import Need
from xftp.cli.doctor import diagnose


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
    assert_says(check, words, command)
    assert diagnosis.exit_status == 0
    assert diagnosis.missing == ()
