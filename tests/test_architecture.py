"""The import direction of docs/architecture.md and docs/lab.md, read from the source."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
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
    # The lab runs xftp as processes and imports nothing of it.
    "lab.links": set(),
    "lab.emulator": {"lab.links"},
    "lab.host": {"lab.links"},
    "lab.topology": {"lab.links", "lab.host", "lab.emulator"},
    "lab.network": {"lab.links", "lab.host", "lab.emulator", "lab.topology"},
    "lab.experiments": {"lab.links", "lab.host", "tuning"},
    "lab.running": {
        "lab.links",
        "lab.host",
        "lab.emulator",
        "lab.network",
        "lab.experiments",
        "tuning",
    },
    "lab.report": {"lab.links", "lab.experiments", "lab.running"},
    "lab.cli": {"lab.links", "lab.experiments", "lab.running", "lab.report"},
}

LAB_ROOMS = {
    "mininet_topos": "lab.links",
    "errors": "lab.links",
    "links": "lab.links",
    "link_parts": "lab.links",
    "link_presets": "lab.links",
    "namespaces": "lab.host",
    "keeper": "lab.host",
    "lifecycle": "lab.host",
    "host_settings": "lab.host",
    "tcp_settings": "lab.host",
    "topologies": "lab.network",
    "network": "lab.network",
    "host_names": "lab.network",
}
"""The rooms of the lab's modules that are no package; a package is a room by its own name."""

ONLY_STANDARD_LIBRARY = (
    *("xftp.errors", "xftp.protocol", "xftp.transport", "tuning"),
    *("lab.links", "lab.emulator", "lab.experiments"),
)

NO_INPUT_OUTPUT = {
    *("asyncio", "ctypes", "fcntl", "os", "pathlib", "select", "selectors", "signal"),
    *("socket", "ssl", "subprocess", "threading", "time"),
}

PURE_ROOMS = ("xftp.protocol", "lab.links")

PURE = {
    "xftp.transport.feeding",
    "mininet_topos.emulator.acks",
    "mininet_topos.emulator.counters",
    "mininet_topos.emulator.direction",
    "mininet_topos.emulator.loss",
    "mininet_topos.emulator.queue",
    "mininet_topos.emulator.recorder",
    "mininet_topos.emulator.schedule",
}
"""Modules elsewhere that reckon only: the time is an argument."""

OURS = ("xftp", "tuning", "mininet_topos")


def modules() -> list[Path]:
    return sorted(path for package in OURS for path in (ROOT / package).rglob("*.py"))


def room_of(name: str) -> str:
    """Give the room of a module: xftp.protocol.records is in xftp.protocol, tuning is one room."""
    parts = name.split(".")
    if parts[0] == "mininet_topos":
        place = parts[min(1, len(parts) - 1)]
        return LAB_ROOMS.get(place, f"lab.{place}")
    return parts[0] if parts[0] == "tuning" else ".".join(parts[:2])


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports(path: Path, *, when_loaded: bool = False) -> Iterator[str]:
    """Give the full names of what a module imports.

    A package is named with what is taken from it where that may be a module. when_loaded: only
    what is imported with the module itself, neither by a function nor for types.
    """
    package = module_name(path) if path.name == "__init__.py" else module_name(path.parent)
    for node in statements(tree_of(path), when_loaded=when_loaded):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*parents, base]) if base else ".".join(parents)
            if is_package(base):
                yield from (f"{base}.{alias.name}" for alias in node.names)
            else:
                yield base


def statements(tree: ast.AST, *, when_loaded: bool) -> Iterator[ast.AST]:
    """Walk through a tree; when_loaded: past functions and what is there for types only."""
    for node in ast.iter_child_nodes(tree):
        is_later = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or (
            isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        )
        if not (when_loaded and is_later):
            yield node
            yield from statements(node, when_loaded=when_loaded)


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def is_package(name: str) -> bool:
    return name.split(".")[0] in OURS and ROOT.joinpath(*name.split("."), "__init__.py").exists()


CASES = [path for path in modules() if module_name(path) != "xftp"]


@pytest.mark.parametrize("path", CASES, ids=module_name)
def test_import_direction(path: Path) -> None:
    room = room_of(module_name(path))
    assert room in MAY_IMPORT, f"{module_name(path)} is in no room"
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


@pytest.mark.parametrize(
    "path",
    [p for p in CASES if room_of(module_name(p)) in PURE_ROOMS or module_name(p) in PURE],
    ids=module_name,
)
def test_what_reckons_touches_nothing(path: Path) -> None:
    """No clock, no socket, no file."""
    assert not {name.split(".")[0] for name in imports(path)} & NO_INPUT_OUTPUT


def test_every_pure_module_is_there() -> None:
    assert {module_name(path) for path in CASES} >= PURE


def test_no_modules_import_each_other() -> None:
    """Round about neither: each can be understood after those that it imports."""
    names = {module_name(path) for path in modules()}
    graph = {
        module_name(path): {
            next((each for each in (name, name.rpartition(".")[0]) if each in names), name)
            for name in imports(path, when_loaded=True)
        }
        & names - {module_name(path)}
        for path in CASES
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"imports in a circle: {' ← '.join(error.args[1])}")


def test_the_test_sees_what_it_looks_for() -> None:
    session = ROOT / "xftp" / "server" / "session.py"
    assert {"xftp.protocol.replies", "xftp.server.registry"} <= set(imports(session))
    assert "xftp.protocol.replies" in set(imports(session, when_loaded=True))
    assert "xftp.server.registry" not in set(imports(session, when_loaded=True))
