"""Directories that the kernel finds beneath a root, or not at all."""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from xftp.server import beneath


@pytest.fixture
def descriptor(root: Path) -> Iterator[int]:
    """The root, with `d/e` in it, and links to all sorts of places."""
    (root / "d" / "e").mkdir(parents=True)
    (root / "\udcff").mkdir()
    (root / "inside").symlink_to("d/../d/e")
    (root / "outside").symlink_to("../..")
    (root / "absolute").symlink_to(root / "d")
    (root / "magic").symlink_to("/proc/self/root")
    (root / "file").touch()
    descriptor = os.open(root, os.O_PATH | os.O_DIRECTORY)
    if (found := beneath.open_directory(descriptor, "d/e")) is None:
        os.close(descriptor)
        pytest.skip("this kernel, or sandbox, has no openat2")
    os.close(found)
    yield descriptor
    os.close(descriptor)


@pytest.mark.parametrize(
    ("path", "found"),
    [("d/e", "d/e"), ("inside", "d/e"), ("d/../inside", "d/e"), ("\udcff", "\udcff"), (".", ".")],
)
def test_inside(descriptor: int, root: Path, path: str, found: str) -> None:
    directory = beneath.open_directory(descriptor, path)
    assert directory is not None
    assert os.path.samestat(os.fstat(directory), os.stat(root / found))
    assert not os.get_inheritable(directory)
    os.close(directory)


@pytest.mark.parametrize(
    "path", ["..", "outside", "absolute", "magic", "/", "d/../..", "/etc", "d" * 256]
)
def test_what_the_caller_has_to_walk(descriptor: int, path: str) -> None:
    assert beneath.open_directory(descriptor, path) is None


@pytest.mark.parametrize(
    ("path", "code"),
    [("nothing", errno.ENOENT), ("file", errno.ENOTDIR)],
)
def test_errors(descriptor: int, path: str, code: int) -> None:
    with pytest.raises(OSError) as raised:
        beneath.open_directory(descriptor, path)
    assert raised.value.errno == code


@pytest.mark.parametrize("code", [errno.ENOSYS, errno.EPERM, errno.E2BIG, errno.EAGAIN])
def test_a_kernel_that_cannot_say(
    descriptor: int, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Refusing:
        def syscall(self, *arguments: object) -> int:
            ctypes.set_errno(code)
            return -1

    monkeypatch.setattr(beneath, "_libc", Refusing())
    assert beneath.open_directory(descriptor, "d") is None
