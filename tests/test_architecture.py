"""The import direction of docs/architecture.md, read from the source."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

MAY_IMPORT = {
    "xftp.errors": set(),
    "xftp.protocol": {"xftp.errors"},
    "xftp.transport": {"xftp.errors", "xftp.protocol"},
    "xftp.server": {"xftp.errors", "xftp.protocol", "xftp.transport"},
    "xftp.client": {"xftp.errors", "xftp.protocol", "xftp.transport"},
    "xftp.cli": {
        "xftp",
        "xftp.errors",
        "xftp.protocol",
        "xftp.transport",
        "xftp.server",
        "xftp.client",
        "tuning",
    },
    "tuning": set(),
}

ONLY_STANDARD_LIBRARY = ("xftp.errors", "xftp.protocol", "xftp.transport", "tuning")

NO_INPUT_OUTPUT = {"asyncio", "os", "pathlib", "select", "selectors", "socket", "ssl", "time"}


OURS = ("xftp", "tuning")


def modules() -> list[Path]:
    return sorted(path for package in OURS for path in (ROOT / package).rglob("*.py"))


def room_of(name: str) -> str:
    """Give the room of a module: xftp.protocol.records is in xftp.protocol, tuning is one room."""
    parts = name.split(".")
    return parts[0] if parts[0] == "tuning" else ".".join(parts[:2])


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path) -> Iterator[str]:
    """Give the full names of what a module imports when it runs (types apart)."""
    package = module_name(path) if path.name == "__init__.py" else module_name(path.parent)
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*parents, base]) if base else ".".join(parents)
            if base == "xftp":
                yield from (f"xftp.{alias.name}" for alias in node.names)
            else:
                yield base


CASES = [path for path in modules() if module_name(path) != "xftp"]


@pytest.mark.parametrize("path", CASES, ids=module_name)
def test_import_direction(path: Path) -> None:
    room = room_of(module_name(path))
    for name in imports(path):
        if name.split(".")[0] not in OURS or room_of(name) == room:
            continue
        target = room_of(name)
        if target not in MAY_IMPORT and room == "xftp.cli":
            continue  # a name of the public API, `from xftp import connect`
        assert target in MAY_IMPORT[room], f"{module_name(path)} imports {name}"


@pytest.mark.parametrize("path", CASES, ids=module_name)
def test_the_lower_rooms_need_nothing_installed(path: Path) -> None:
    if room_of(module_name(path)) not in ONLY_STANDARD_LIBRARY:
        return
    foreign = {
        name
        for name in imports(path)
        if name.split(".")[0] not in sys.stdlib_module_names | set(OURS)
    }
    assert not foreign


@pytest.mark.parametrize("path", [p for p in CASES if "protocol" in p.parts], ids=module_name)
def test_the_protocol_touches_nothing(path: Path) -> None:
    """No clock, no socket, no file."""
    assert not {name.split(".")[0] for name in imports(path)} & NO_INPUT_OUTPUT


def test_the_test_sees_what_it_looks_for() -> None:
    found = set(imports(ROOT / "xftp" / "transport" / "sender.py"))
    assert {"xftp.protocol.records", "xftp.transport.files"} <= found
