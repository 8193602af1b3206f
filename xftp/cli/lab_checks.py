"""What only the lab (mininet_topos) needs of a machine; users of the product do not."""

from __future__ import annotations

from .checks import Check, Checker, Need, State, as_root, install_command
from .machine import CAP_NET_ADMIN, CAP_SYS_ADMIN, Machine

_MAX_CLOCK_RESOLUTION_S = 1e-6
"""A thousandth of what the emulator's delays may be wrong by."""

_CLOCKS = "/sys/devices/system/clocksource/clocksource0"
_SLOW_CLOCKS = frozenset({"acpi_pm", "hpet", "jiffies", "refined-jiffies", "pit"})
"""Clock sources that need I/O, or tick as seldom as the timer does."""


def netem(machine: Machine) -> Check:
    """The kernel's own link emulation, which the lab can do without."""
    built, release = machine.kernel_option("CONFIG_NET_SCH_NETEM"), machine.release
    modules = machine.text(f"/lib/modules/{release}/modules.dep") or ""
    if built == "y" or machine.path("/sys/module/sch_netem").exists():
        return Check("netem", Need.LAB, State.OK, "in the kernel")
    if "sch_netem.ko" in modules:
        return Check("netem", Need.LAB, State.OK, "as a module")
    if built is None:
        found = "cannot be told; the lab emulates links itself"
        return Check("netem", Need.LAB, State.LIMITED, found)
    if built == "m":
        command = install_command(
            machine, f"linux-modules-extra-{release}", f"kernel-modules-extra-{release}"
        )
        found = "the kernel's module is not installed"
        return Check("netem", Need.LAB, State.MISSING, found, command)
    found = "not in this kernel; the lab emulates links itself"
    return Check("netem", Need.LAB, State.MISSING, found)


def network_namespaces(machine: Machine) -> Check:
    """The hosts of the lab."""
    label = "network namespaces"
    if not machine.path("/proc/self/ns/net").exists():
        found = "needs a kernel with CONFIG_NET_NS=y"
        return Check(label, Need.LAB, State.MISSING, found)
    return _by_right(machine, label, CAP_SYS_ADMIN, "can be made")


def tun(machine: Machine) -> Check:
    """Where the lab's emulator takes and gives packets."""
    if machine.path("/dev/net/tun").exists():
        return _by_right(machine, "TUN", CAP_NET_ADMIN, "/dev/net/tun")
    if machine.path("/sys/class/misc/tun").exists():
        command = "sh -c 'mkdir -p /dev/net && mknod /dev/net/tun c 10 200'"
    else:
        command = "modprobe tun"
    return Check("TUN", Need.LAB, State.MISSING, "no /dev/net/tun", as_root(machine, command))


def _by_right(machine: Machine, label: str, capability: int, found: str) -> Check:
    if machine.has_capability(capability):
        return Check(label, Need.LAB, State.OK, found)
    return Check(label, Need.LAB, State.LIMITED, f"{found}, by root only")


def mnexec(machine: Machine) -> Check:
    """Mininet's helper."""
    return _program(machine, "mnexec", "mininet")


def ip(machine: Machine) -> Check:
    """The command of iproute2."""
    return _program(machine, "ip", "iproute2", "iproute")


def _program(machine: Machine, name: str, debian: str, fedora: str | None = None) -> Check:
    path = machine.find_command(name)
    if path is not None:
        return Check(name, Need.LAB, State.OK, path)
    command = install_command(machine, debian, fedora)
    return Check(name, Need.LAB, State.MISSING, "not installed", command)


def clock(machine: Machine) -> Check:
    """What the emulator's delays are measured with."""
    source = machine.text(f"{_CLOCKS}/current_clocksource") or "unknown source"
    resolution_s = machine.clock_resolution_s()
    found = f"{source}, {resolution_s * 1e9:.0f} ns"
    if source in _SLOW_CLOCKS:
        others = (machine.text(f"{_CLOCKS}/available_clocksource") or "").split()
        better = next((name for name in others if name not in _SLOW_CLOCKS), None)
        command = better and as_root(
            machine, f"sh -c 'echo {better} > {_CLOCKS}/current_clocksource'"
        )
        return Check("clock", Need.LAB, State.LIMITED, f"{found}: slow to read", command)
    if resolution_s > _MAX_CLOCK_RESOLUTION_S:
        return Check("clock", Need.LAB, State.LIMITED, f"{found}: delays will be inexact")
    return Check("clock", Need.LAB, State.OK, found)


LAB: tuple[Checker, ...] = (netem, network_namespaces, tun, mnexec, ip, clock)
"""In the order in which they are shown."""
