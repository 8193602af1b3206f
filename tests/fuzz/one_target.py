"""One target under atheris, in a process of its own: libFuzzer never returns.

python -m tests.fuzz.one_target NAME [options of libFuzzer] CORPUS…
"""

from __future__ import annotations

import logging
import sys

import atheris

atheris.enabled_hooks.add("str")  # what is compared with a constant tells what to try
with atheris.instrument_imports(include=["xftp", "aioftp.client"]):
    from tests.fuzz.targets import TARGETS


def main(arguments: list[str]) -> None:
    """Fuzz the target that is named, until libFuzzer ends the process."""
    logging.disable(logging.CRITICAL)  # wrong input is no news here
    target = TARGETS[arguments[1]]
    options = [*arguments[:1], f"-max_len={target.most_bytes}", *arguments[2:]]
    atheris.Setup(options, target.check)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv)
