"""The programs start as fast from a working copy as when they are installed."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

import xftp
from mininet_topos.errors import MissingToolError
from mininet_topos.running import bytecode


def test_everything_has_its_bytecode() -> None:
    bytecode.compile_programs()
    source = Path(xftp.__file__)
    compiled = Path(importlib.util.cache_from_source(str(source)))
    # The source's time is in the bytes 8 to 12 of the header (PEP 552).
    noted = int.from_bytes(compiled.read_bytes()[8:12], "little")
    assert noted == int(os.stat(source).st_mtime)


def test_what_cannot_be_compiled_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "xftp").mkdir()
    (tmp_path / "xftp" / "broken.py").write_text("def")
    monkeypatch.setattr(bytecode, "_PROJECT", tmp_path)
    with pytest.raises(MissingToolError, match="xftp cannot be compiled"):
        bytecode.compile_programs()
