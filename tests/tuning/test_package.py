"""The package is a leaf: it imports nothing of ours, and nothing that must be installed."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

import tuning

PACKAGE = Path(tuning.__file__).parent
MODULES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_only_the_standard_library_is_imported(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
        else:
            continue
        for name in names:
            assert name.split(".")[0] in sys.stdlib_module_names | {"tuning"}, name


def test_all_names_exist() -> None:
    assert all(hasattr(tuning, name) for name in tuning.__all__)
