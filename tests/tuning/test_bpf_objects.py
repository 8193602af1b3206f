"""The committed objects are those of the committed sources."""

from __future__ import annotations

import hashlib
import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from tuning.bpf import host

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tuning" / "bpf"
SUMS = host.OBJECTS / "SHA256SUMS"

COMPARED = re.compile(r"struct_ops/.*|\.rel.*|\.struct_ops.*|\.maps|\.rodata.*|\.data.*|license")
"""Sections that decide what is loaded; names of types and lines of source are left out."""


def recorded() -> tuple[str, dict[str, str]]:
    """Give the compiler that made the objects, and the sums by path."""
    first, *lines = SUMS.read_text().splitlines()
    return first.removeprefix("# "), {path: sum_ for sum_, path in (ln.split() for ln in lines)}


def major(version: str) -> str:
    found = re.search(r"version (\d+)", version)
    assert found is not None
    return found[1]


def test_nothing_changed_since_make_bpf() -> None:
    """A changed source, header or object, or one that is new or gone, needs `make bpf`."""
    files = [*FOLDER.glob("*.c"), *FOLDER.glob("*.h"), *host.OBJECTS.glob("*.o")]
    sums = {
        str(path.relative_to(FOLDER)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }
    assert recorded()[1] == sums, "run make bpf"


def test_every_program_has_an_object() -> None:
    assert {path.name.removesuffix(".bpf.o") for path in host.OBJECTS.glob("*.o")} == set(
        host.names()
    )


def here() -> str | None:
    """Give the compiler of this machine, if it can build the objects."""
    if not all(map(shutil.which, ("clang", "llvm-strip", "make"))):
        return None
    if not Path("/usr/include/bpf/bpf_helpers.h").exists():
        return None
    done = subprocess.run(["clang", "--version"], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[0]


def sections(content: bytes) -> dict[str, bytes]:
    """Read the sections of a 64-bit little-endian ELF file that are compared."""
    assert content[:6] == b"\x7fELF\x02\x01"
    (at,) = struct.unpack_from("<Q", content, 40)
    _, count, names_index = struct.unpack_from("<3H", content, 58)
    headers = [struct.unpack_from("<IIQQQQ", content, at + 64 * n) for n in range(count)]
    names = headers[names_index][4]
    found = {}
    for name_at, _, _, _, offset, size in headers:
        name = content[names + name_at : content.index(b"\0", names + name_at)].decode()
        if COMPARED.fullmatch(name) and not name.startswith(".rel.BTF"):
            found[name] = content[offset : offset + size]
    return found


def test_the_sections_of_an_object_are_read() -> None:
    found = sections((host.OBJECTS / "xftp_abc.bpf.o").read_bytes())
    assert {".maps", ".struct_ops", "license", "struct_ops/init"} <= set(found)
    assert found["license"] == b"Dual MIT/GPL\0"
    assert len(found["struct_ops/init"]) % 8 == 0


@pytest.mark.skipif(here() is None, reason="needs clang, llvm-strip and libbpf's headers")
def test_compiling_again_gives_the_same(tmp_path: Path) -> None:
    version, _ = recorded()
    if major(here() or "") != major(version):
        pytest.skip(f"the objects were made by {version}, here is {here()}")
    subprocess.run(
        ["make", "-s", "-j2", "bpf-objects", f"BPF_OUT={tmp_path}"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        timeout=100,
    )
    for name in host.names():
        made = (tmp_path / f"{name}.bpf.o").read_bytes()
        committed = (host.OBJECTS / f"{name}.bpf.o").read_bytes()
        if here() == version:
            assert made == committed, name
        else:
            assert sections(made) == sections(committed), name
