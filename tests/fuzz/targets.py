"""The targets by name: each takes any bytes and fails if a promise about them is broken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz import control_targets, data_targets, grammar_targets
from tests.fuzz.session_target import session

CORPUS = Path(__file__).parent / "corpus"
"""A directory for each target: what libFuzzer begins with, and hypothesis varies."""


@dataclass(frozen=True, slots=True)
class Target:
    """One property of what a peer may send."""

    check: Callable[[bytes], None]
    """Fails, or raises what is not declared, where the property does not hold."""

    most_bytes: int = 4096
    """The longest input that makes sense."""

    examples: int = 80
    """Inputs that hypothesis tries in one run of the tests."""

    @property
    def name(self) -> str:
        """The name of the property."""
        return self.check.__name__

    def corpus(self) -> list[bytes]:
        """Give the inputs that are kept."""
        return [path.read_bytes() for path in sorted((CORPUS / self.name).iterdir())]


TARGETS = {
    target.name: target
    for target in (
        Target(control_targets.commands),
        Target(control_targets.replies),
        Target(control_targets.opening, most_bytes=64),
        Target(grammar_targets.multiple_addresses, most_bytes=1024),
        Target(grammar_targets.single_addresses, most_bytes=256),
        Target(grammar_targets.mult_options, most_bytes=1024),
        Target(grammar_targets.series_lines, most_bytes=1024),
        Target(grammar_targets.hash_lines, most_bytes=512),
        Target(grammar_targets.report_lines, most_bytes=2048),
        Target(grammar_targets.listing_lines, most_bytes=2048),
        Target(data_targets.records, most_bytes=64),
        Target(data_targets.record_set, most_bytes=512),
        Target(data_targets.receipts, most_bytes=256),
        Target(data_targets.proxy_header, most_bytes=1200),
        Target(session, most_bytes=2048, examples=10),
    )
}
