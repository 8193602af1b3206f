"""The programs start as fast from a working copy as when they are installed."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from mininet_topos.errors import MissingToolError
from mininet_topos.running import bytecode


@pytest.fixture
def working_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give a working copy of both packages without any bytecode."""
    for package in ("xftp", "tuning"):
        (tmp_path / package / "within").mkdir(parents=True)
        (tmp_path / package / "within" / "module.py").write_text("X = 1\n")
    monkeypatch.setattr(bytecode, "_PROJECT", tmp_path)
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    return tmp_path


def test_every_module_gets_its_bytecode(working_copy: Path) -> None:
    bytecode.compile_programs()
    for package in ("xftp", "tuning"):
        source = working_copy / package / "within" / "module.py"
        assert Path(importlib.util.cache_from_source(str(source))).exists()


def test_what_cannot_be_compiled_is_told(working_copy: Path) -> None:
    (working_copy / "xftp" / "broken.py").write_text("def")
    with pytest.raises(MissingToolError, match="xftp cannot be compiled"):
        bytecode.compile_programs()
