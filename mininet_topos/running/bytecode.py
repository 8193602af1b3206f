"""What an installation has and a working copy may lack: the programs' bytecode."""

from __future__ import annotations

import compileall
from pathlib import Path

from ..errors import MissingToolError

_PROJECT = Path(__file__).parents[2]


def compile_programs() -> None:
    """Compile what `xftp` and `xftpd` import, as pip does when it installs them.

    Without it, as where PYTHONDONTWRITEBYTECODE is set, every start of theirs takes a tenth of a
    second longer or more, and none of the others'. Raises MissingToolError.
    """
    for package in ("xftp", "tuning"):
        if not compileall.compile_dir(_PROJECT / package, quiet=2):
            raise MissingToolError(f"{_PROJECT / package} cannot be compiled to bytecode")
