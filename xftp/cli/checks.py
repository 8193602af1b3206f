"""What the product needs of a machine, one check per line of `xftp doctor`."""

from __future__ import annotations

import enum
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tuning import congestion
from tuning.planning import BUFFERS_PER_WINDOW, plan
from tuning.profiles import PROFILES
from tuning.units import format_size

from .ceilings import fewest_connections
from .machine import CAP_BPF, CAP_NET_ADMIN, CAP_SYS_ADMIN, Machine
from .text import connections_text

STRUCT_OPS_SINCE = (5, 6)
"""Linux with congestion control as BPF programs."""

PARAMETERS_SINCE = (5, 19)
"""Linux where an open BPF map needs no privilege (tuning.congestion.ParameterMap)."""

_STRUCT_OPS_TYPE = "bpf_struct_ops_tcp_congestion_ops"
"""In the types of a kernel that takes such programs."""

_LINK = PROFILES["hts-geo"].link("download")
"""The link that buffers are judged by, as `xftp plan --profile hts-geo` does."""

_ALLOWED = "net.ipv4.tcp_allowed_congestion_control"


class State(enum.StrEnum):
    """How good what was found is."""

    OK = "ok"
    LIMITED = "limited"
    MISSING = "missing"


class Need(enum.StrEnum):
    """Who needs it; the value is for people."""

    TRANSFERS = "transfers"
    TUNING = "tuning"
    LAB = "lab"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at."""

    name: str
    need: Need
    state: State
    found: str
    """What there is, for people."""

    command: str | None = None
    """What mends it; None where nothing has to be or no command can."""


Checker = Callable[[Machine], Check]


def as_root(machine: Machine, command: str) -> str:
    """Write a command for root as this user has to type it."""
    return command if machine.is_root else f"sudo {command}"


def fix_command(machine: Machine) -> str:
    """Write the command that loads the algorithms; sudo does not search a virtual environment."""
    script = Path(sys.executable).with_name("xftp")
    if not script.is_file():
        program = f"{shlex.quote(sys.executable)} -m xftp.cli.client"
    elif script.parent in (Path("/usr/bin"), Path("/usr/local/bin")):
        program = "xftp"
    else:
        program = shlex.quote(str(script))
    return as_root(machine, f"{program} doctor --fix")


def install_command(machine: Machine, debian: str, fedora: str | None = None) -> str | None:
    """Write the command that installs a package; None where the system is neither."""
    if machine.find_command("apt-get"):
        return as_root(machine, f"apt-get install --no-install-recommends {debian}")
    if fedora is not None and machine.find_command("dnf"):
        return as_root(machine, f"dnf install {fedora}")
    return None


# -- transfers --------------------------------------------------------------------------------


def linux(machine: Machine) -> Check:
    """Linux, and which."""
    if machine.platform != "linux":
        found = f"{machine.platform}: plain transfers only; tuning needs Linux"
        return Check("Linux", Need.TRANSFERS, State.MISSING, found)
    for since, lacks in (
        (STRUCT_OPS_SINCE, "takes no algorithms of xftp"),
        (PARAMETERS_SINCE, "lets only root set the initial window"),
    ):
        if machine.kernel_version < since:
            version = ".".join(map(str, since))
            found = f"{machine.release or 'unknown version'}: before {version} it {lacks}"
            return Check("Linux", Need.TRANSFERS, State.LIMITED, found)
    return Check("Linux", Need.TRANSFERS, State.OK, machine.release)


def uvloop(machine: Machine) -> Check:
    """The event loop that transfers run on where it is installed."""
    version = machine.package_version("uvloop")
    if version is not None:
        return Check("uvloop", Need.TRANSFERS, State.OK, version)
    command = f"{shlex.quote(sys.executable)} -m pip install uvloop"
    found = "not installed: transfers run on asyncio, and slower"
    return Check("uvloop", Need.TRANSFERS, State.LIMITED, found, command)


def _switch(
    label: str, sysctl: str, wanted: int, without: str, worse: State = State.LIMITED
) -> Checker:
    """Make the check of a sysctl that is on or off; without: what a wrong value means."""
    name = f"net.ipv4.{sysctl}"

    def check(machine: Machine) -> Check:
        values = machine.integers(name)
        if not values:
            return Check(label, Need.TRANSFERS, State.LIMITED, f"{name} cannot be read")
        if bool(values[0]) == bool(wanted):
            return Check(label, Need.TRANSFERS, State.OK, "on" if wanted else "off")
        command = as_root(machine, f"sysctl -w {name}={wanted}")
        found = f"{'off' if wanted else 'on'}: {without}"
        return Check(label, Need.TRANSFERS, worse, found, command)

    return check


# -- tuning -----------------------------------------------------------------------------------


def socket_options(machine: Machine) -> Check:
    """Pacing and the unsent limit, tried on a socket."""
    refused = machine.refused_options()
    if not refused:
        return Check("pacing, unsent", Need.TUNING, State.OK, "granted to a socket")
    found = f"a socket is refused {', '.join(refused)}"
    return Check("pacing, unsent", Need.TUNING, State.MISSING, found)


def _ceiling(label: str, name: str) -> Checker:
    """Make the check of the largest buffer that a process may set: what a plan would need."""

    def check(machine: Machine) -> Check:
        values = machine.integers(name)
        if not values:
            return Check(label, Need.TUNING, State.LIMITED, f"{name} cannot be read here")
        has, planned = values[0], plan(_LINK.rate_bps, _LINK.rtt_s)
        needed, over = planned.receive_buffer_bytes, connections_text(planned.connections)
        if has >= needed:
            found = f"{format_size(has)}, enough for hts-geo over {over}"
            return Check(label, Need.TUNING, State.OK, found)
        enough = fewest_connections(_LINK, has)
        else_ = f", or {connections_text(enough)}" if enough else ""
        found = f"{format_size(has)}; hts-geo over {over} needs {format_size(needed)}{else_}"
        command = as_root(machine, f"sysctl -w {name}={needed}")
        return Check(label, Need.TUNING, State.LIMITED, found, command)

    return check


def _growth(label: str, name: str) -> Checker:
    """Make the check of how far buffers grow that nobody set: half of them is window."""

    def check(machine: Machine) -> Check:
        values = machine.integers(name)
        if len(values) != 3:
            return Check(label, Need.TUNING, State.LIMITED, f"{name} cannot be read here")
        needed = round(BUFFERS_PER_WINDOW * _LINK.window_bytes)
        least, usual, most = values
        if most >= needed:
            return Check(label, Need.TUNING, State.OK, f"up to {format_size(most)} unasked")
        found = f"up to {format_size(most)} unasked; hts-geo needs {format_size(needed)}"
        command = as_root(machine, f'sysctl -w {name}="{least} {usual} {needed}"')
        return Check(label, Need.TUNING, State.LIMITED, found, command)

    return check


def congestion_control(machine: Machine) -> Check:
    """The kernel's own algorithms, and who may choose them."""
    label = "congestion control"
    own = [name for name in _available(machine) if name not in congestion.names()]
    if not own:
        found = "the kernel does not tell its algorithms"
        return Check(label, Need.TUNING, State.MISSING, found)
    default = machine.sysctl("net.ipv4.tcp_congestion_control") or "unknown"
    found = f"{', '.join(own)}; {default} by default"
    return _with_leave(machine, label, own, found)


def our_algorithms(machine: Machine) -> Check:
    """The BPF programs of this package, in the kernel now."""
    label = "xftp's algorithms"
    ours, available = congestion.names(), _available(machine)
    absent = [name for name in ours if name not in available]
    if not absent:
        return _with_leave(machine, label, ours, f"all {len(ours)} loaded: {', '.join(ours)}")
    names = ", ".join(name.removeprefix("xftp_") for name in absent)
    count = "none" if len(absent) == len(ours) else f"{len(ours) - len(absent)}"
    found = f"{count} of {len(ours)} loaded; not {names}"
    command: str | None
    if kernel_types(machine).state is not State.OK:
        found, command = f"{found}; this kernel takes none (below)", None
    elif all((machine.objects / f"{name}.bpf.o").is_file() for name in absent):
        command = fix_command(machine)
    else:
        found, command = f"{found}; not compiled either", "make bpf"
    return Check(label, Need.TUNING, State.MISSING, found, command)


def _available(machine: Machine) -> tuple[str, ...]:
    return machine.words("net.ipv4.tcp_available_congestion_control")


def all_loaded(machine: Machine) -> bool:
    """Tell whether every algorithm of this package is in the kernel."""
    return set(congestion.names()) <= set(_available(machine))


def _with_leave(
    machine: Machine, label: str, names: list[str] | tuple[str, ...], found: str
) -> Check:
    """Finish a check of algorithms by who may choose them."""
    allowed = machine.words(_ALLOWED)
    denied = [name for name in names if name not in allowed]
    if not denied or machine.has_capability(CAP_NET_ADMIN):
        everyone = f"{found}; {', '.join(denied)} only for root" if denied else found
        return Check(label, Need.TUNING, State.OK, everyone)
    # Writing the list takes the leave from every algorithm that is not on it.
    command = as_root(machine, f'sysctl -w {_ALLOWED}="{" ".join((*allowed, *denied))}"')
    found = f"{found}; {', '.join(denied)} only for root"
    return Check(label, Need.TUNING, State.LIMITED, found, command)


def initial_window(machine: Machine) -> Check:
    """The parameters of our algorithms, tried on a socket."""
    label = "initial window"
    loaded = [name for name in congestion.names() if name in _available(machine)]
    if not loaded:
        by_route = machine.has_capability(CAP_NET_ADMIN)
        found = "by a route's initcwnd; " if by_route else ""
        found += "per socket with xftp's algorithms only"
        state = State.LIMITED if by_route else State.MISSING
        return Check(label, Need.TUNING, state, found)
    problem = machine.parameters_problem(loaded[0])
    if problem is None:
        return Check(label, Need.TUNING, State.OK, "can be set per socket")
    state = State.MISSING if machine.is_root else State.LIMITED
    return Check(label, Need.TUNING, state, problem)


def kernel_types(machine: Machine) -> Check:
    """What the programs are fitted to as they are loaded."""
    label = "BPF in the kernel"
    found = machine.describes(_STRUCT_OPS_TYPE)
    if found:
        return Check(label, Need.TUNING, State.OK, "struct_ops, and types (BTF) to fit it to")
    lack = (
        "no types (BTF): needs a kernel with CONFIG_DEBUG_INFO_BTF=y, as Debian's have it"
        if found is None
        else "takes no congestion control: needs Linux 5.6 or later with CONFIG_BPF_JIT=y"
    )
    return Check(label, Need.TUNING, State.MISSING, lack)


def libbpf(machine: Machine) -> Check:
    """The library that loads them."""
    problem = machine.library_problem("libbpf.so.1")
    if problem is None:
        return Check("libbpf", Need.TUNING, State.OK, "libbpf.so.1")
    command = install_command(machine, "libbpf1", "libbpf")
    if all_loaded(machine):
        found = "cannot be loaded; needed again after the next boot"
        return Check("libbpf", Need.TUNING, State.LIMITED, found, command)
    return Check("libbpf", Need.TUNING, State.MISSING, problem, command)


def right_to_load(machine: Machine) -> Check:
    """Who may load them."""
    label = "right to load BPF"
    if not machine.is_root:
        found = "root only; what is loaded everyone may use"
        return Check(label, Need.TUNING, State.LIMITED, found)
    if machine.has_capability(CAP_SYS_ADMIN) or (
        machine.has_capability(CAP_BPF) and machine.has_capability(CAP_NET_ADMIN)
    ):
        return Check(label, Need.TUNING, State.OK, "root")
    state = State.LIMITED if all_loaded(machine) else State.MISSING
    found = "root without CAP_BPF (a container?): run xftp doctor --fix on the host"
    return Check(label, Need.TUNING, state, found)


PRODUCT: tuple[Checker, ...] = (
    linux,
    uvloop,
    _switch(
        "window scaling",
        "tcp_window_scaling",
        1,
        "no window exceeds 64 KiB, whatever the buffers",
        State.MISSING,
    ),
    _switch("SACK", "tcp_sack", 1, "several losses per round trip are repaired one by one"),
    _switch("timestamps", "tcp_timestamps", 1, "the round-trip time is seldom measured"),
    _switch(
        "idle connections",
        "tcp_slow_start_after_idle",
        0,
        "a pause between files costs the window that was reached",
    ),
    socket_options,
    _ceiling("receive ceiling", "net.core.rmem_max"),
    _ceiling("send ceiling", "net.core.wmem_max"),
    _growth("receive growth", "net.ipv4.tcp_rmem"),
    _growth("send growth", "net.ipv4.tcp_wmem"),
    congestion_control,
    our_algorithms,
    initial_window,
    kernel_types,
    libbpf,
    right_to_load,
)
"""In the order in which they are shown."""

ANYWHERE: tuple[Checker, ...] = (linux, uvloop)
"""What can be asked of a system that is not Linux."""
