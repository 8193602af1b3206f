"""Load and unload: what of this machine is changed, and how it is put back.

What `load` makes, all of it under /sys/fs/bpf/xftp, and `unload` removes:

xftp_reno97 …   one pinned struct_ops map per registered algorithm
parameters      the map of per-socket parameters that all of them share
mounted/        /sys/fs/bpf was no BPF file system before; `unload` unmounts it
temporary/NAME/ loaded by `loaded()`, to be unloaded by the last one that leaves it

An algorithm stays registered until its pin is unloaded, whoever exits. Connections that use it then
go on with it until they close.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..errors import TuningError
from . import libbpf, syscalls

PROC = Path("/proc/sys/net/ipv4")
BPF_FILE_SYSTEM = Path("/sys/fs/bpf")
PINS = BPF_FILE_SYSTEM / "xftp"
PARAMETERS_PIN = PINS / "parameters"
KERNEL_TYPES = Path("/sys/kernel/btf/vmlinux")
OBJECTS = Path(__file__).parent / "objects"

PARAMETERS_MAP = "xftp_parameters"
"""The map's name in common.h."""

_MOUNTED = PINS / "mounted"
_TEMPORARY = PINS / "temporary"

_MUTEX = Path("/sys/fs")
"""Locked while something is loaded or unloaded: a directory that is always there, so that no
lock file is left behind."""

_MUTEX_TIMEOUT_S = 60.0

_MOUNT_FLAGS = 2 | 4 | 8  # MS_NOSUID, MS_NODEV, MS_NOEXEC of sys/mount.h
_MNT_DETACH = 2  # of sys/mount.h: also while somebody is in a directory of it


class CongestionError(TuningError):
    """An algorithm that cannot be had, and what to do about it."""


def names() -> tuple[str, ...]:
    """Name the algorithms that this package brings, built or not."""
    return tuple(sorted(source.stem for source in Path(__file__).parent.glob("xftp_*.c")))


def available() -> tuple[str, ...]:
    """Name the algorithms that the kernel has now, other people's included."""
    return words("tcp_available_congestion_control")


def words(setting: str) -> tuple[str, ...]:
    """Read a setting of net.ipv4 that is a list of words. Raises CongestionError."""
    path = PROC / setting
    try:
        return tuple(path.read_text().split())
    except OSError as error:
        raise CongestionError(f"{path} cannot be read ({error.strerror})") from error


def is_loaded(name: str) -> bool:
    """Is the algorithm in the kernel now?"""
    return name in available()


def load(wanted: Iterable[str] | None = None) -> tuple[str, ...]:
    """Register algorithms of this package, all of them by default; give those that are new.

    They stay until `unload`. Needs root. Raises CongestionError.
    """
    chosen = _checked(wanted)
    with _mutex():
        return _load(chosen)


def unload(wanted: Iterable[str] | None = None) -> tuple[str, ...]:
    """Remove algorithms of this package, all by default; give those that were loaded.

    With the last one goes everything `load` made on this machine. Needs root. Raises
    CongestionError.
    """
    chosen = _checked(wanted)
    with _mutex():
        # Another version of this package may have loaded algorithms that this one has not.
        return _unload(_pinned() if wanted is None else chosen)


@contextmanager
def loaded(wanted: Iterable[str] | None = None) -> Iterator[None]:
    """Have algorithms loaded for a while.

    Several processes may do so at once: the last one to leave unloads what they loaded, and leaves
    what was there before them. Needs root. Raises CongestionError.
    """
    chosen = _checked(wanted)
    with _mutex():
        new = _load(chosen)
        _TEMPORARY.mkdir(exist_ok=True)
        for name in new:
            (_TEMPORARY / name).mkdir()
        user = os.open(PINS, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(user, fcntl.LOCK_SH)
    try:
        yield
    finally:
        with _mutex():
            try:
                fcntl.flock(user, fcntl.LOCK_EX | fcntl.LOCK_NB)
                last = True
            except BlockingIOError:
                last = False
            os.close(user)  # an open directory keeps the file system mounted
            if last and _TEMPORARY.is_dir():
                _unload(tuple(entry.name for entry in _TEMPORARY.iterdir()))
                with suppress(FileNotFoundError):
                    _TEMPORARY.rmdir()


def _checked(wanted: Iterable[str] | None) -> tuple[str, ...]:
    ours = names()
    chosen = ours if wanted is None else tuple(wanted)
    for name in chosen:
        if name not in ours:
            raise CongestionError(f"{name} is no algorithm of this package: {', '.join(ours)} are")
    if os.geteuid() != 0:
        raise CongestionError(
            "BPF programs are loaded and unloaded by root: run `python -m tuning load` as root"
        )
    return chosen


def _load(chosen: tuple[str, ...]) -> tuple[str, ...]:
    if not KERNEL_TYPES.exists():
        raise CongestionError(
            f"this kernel does not describe its types ({KERNEL_TYPES} is missing): "
            "use one built with CONFIG_DEBUG_INFO_BTF=y, as Debian's and Ubuntu's are"
        )
    _prepare_directory()
    new: list[str] = []
    try:
        for name in chosen:
            if _load_one(name):
                new.append(name)
    except BaseException:
        _unload(tuple(new))
        raise
    # Anyone may tell an algorithm about a socket of his own; nobody can reach another's.
    with suppress(FileNotFoundError):
        PARAMETERS_PIN.chmod(0o666)
    return tuple(new)


def _load_one(name: str) -> bool:
    pin = PINS / name
    if is_loaded(name):
        if pin.exists():
            return False
        raise CongestionError(
            f"{name} is registered already, but not by this package: "
            f"run `bpftool struct_ops unregister name {name}` first"
        )
    pin.unlink(missing_ok=True)
    compiled = OBJECTS / f"{name}.bpf.o"
    if not compiled.exists():
        raise CongestionError(f"{compiled} is missing: run `make bpf` in the source tree")
    try:
        libbpf.register(compiled, name, pin, {PARAMETERS_MAP: PARAMETERS_PIN})
    except libbpf.LibraryMissing as error:
        raise CongestionError(
            f"libbpf is needed to load BPF programs ({error}): run `apt-get install libbpf1`"
        ) from error
    except libbpf.LoadError as error:
        raise _explained(name, error) from error
    return True


def _explained(name: str, error: libbpf.LoadError) -> CongestionError:
    if error.errno in (errno.EPERM, errno.EACCES) and "programs" in error.what and not error.log:
        hint = "this root may not load BPF programs (a container?): load them on the host"
    elif any("is not found in kernel BTF" in line for line in error.log):
        hint = (
            "this kernel takes no congestion control as a BPF program: "
            "use Linux 5.6 or later with CONFIG_BPF_JIT=y"
        )
    elif PARAMETERS_PIN.exists() and any(PARAMETERS_MAP in line for line in error.log):
        hint = "another version of this package is loaded: run `python -m tuning unload` first"
    else:
        hint = error.log[0] if error.log else "the kernel gave no reason"
    problem = CongestionError(f"{name} was refused at {error.what} ({error.strerror}): {hint}")
    for line in error.log:
        problem.add_note(line)
    return problem


def _unload(chosen: tuple[str, ...]) -> tuple[str, ...]:
    gone: list[str] = []
    for name in chosen:
        with suppress(FileNotFoundError):
            (_TEMPORARY / name).rmdir()
        pin = PINS / name
        try:
            descriptor = syscalls.open_pinned(pin)
        except FileNotFoundError:
            continue
        try:
            if syscalls.delete(descriptor, 0):
                gone.append(name)
        finally:
            os.close(descriptor)
        pin.unlink()
    _remove_directory_if_unused()
    return tuple(gone)


def _pinned() -> tuple[str, ...]:
    """Name what is pinned in our directory besides the map and the two notes."""
    if not PINS.is_dir():
        return ()
    notes = (PARAMETERS_PIN, _MOUNTED, _TEMPORARY)
    return tuple(entry.name for entry in PINS.iterdir() if entry not in notes)


def _prepare_directory() -> None:
    if not BPF_FILE_SYSTEM.is_dir():
        raise CongestionError(
            f"this kernel has no {BPF_FILE_SYSTEM}: use one built with CONFIG_BPF_SYSCALL=y"
        )
    mounted = not _is_bpf_file_system()
    if mounted:
        _mount()
    PINS.mkdir(mode=0o755, exist_ok=True)
    if mounted:
        _MOUNTED.mkdir()


def _remove_directory_if_unused() -> None:
    if not PINS.is_dir() or _pinned():
        return
    PARAMETERS_PIN.unlink(missing_ok=True)
    if _TEMPORARY.is_dir():
        _TEMPORARY.rmdir()
    mounted = _MOUNTED.is_dir()
    if mounted:
        _MOUNTED.rmdir()
    PINS.rmdir()
    # Somebody else may have pinned something meanwhile: then it stays mounted. Names with a dot
    # (maps.debug, progs.debug) are the kernel's own.
    if mounted and all("." in entry.name for entry in BPF_FILE_SYSTEM.iterdir()):
        ctypes.CDLL(None).umount2(os.fsencode(BPF_FILE_SYSTEM), _MNT_DETACH)


def _is_bpf_file_system() -> bool:
    mounts = (line.split() for line in Path("/proc/self/mounts").read_text().splitlines())
    kinds = [kind for _, where, kind, *_ in mounts if where == str(BPF_FILE_SYSTEM)]
    return bool(kinds) and kinds[-1] == "bpf"


def _mount() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    where = os.fsencode(BPF_FILE_SYSTEM)
    if libc.mount(b"bpf", where, b"bpf", ctypes.c_ulong(_MOUNT_FLAGS), b"mode=0755") != 0:
        raise CongestionError(
            f"{BPF_FILE_SYSTEM} could not be mounted ({os.strerror(ctypes.get_errno())}): "
            f"run `mount -t bpf bpf {BPF_FILE_SYSTEM}` on the host"
        )


@contextmanager
def _mutex() -> Iterator[None]:
    """Keep other processes from loading and unloading."""
    descriptor = os.open(_MUTEX, os.O_RDONLY | os.O_DIRECTORY)
    try:
        deadline = time.monotonic() + _MUTEX_TIMEOUT_S
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise CongestionError(
                        f"another process has been loading algorithms for {_MUTEX_TIMEOUT_S:.0f} s "
                        f"(it holds a lock on {_MUTEX}): try again when it has ended"
                    ) from None
                time.sleep(0.02)
        yield
    finally:
        os.close(descriptor)
