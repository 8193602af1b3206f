"""The algorithms, loaded for the tests that ask, and the link they are tried on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bench.emulated_path import Link, long_link
from tuning import congestion

from . import bpf_support


@pytest.fixture(scope="session")
def loaded_algorithms() -> Iterator[None]:
    reason = bpf_support.missing()
    if reason is not None:
        pytest.skip(reason)
    with congestion.loaded():
        yield


@pytest.fixture
def parameter_map(loaded_algorithms: None) -> Iterator[congestion.ParameterMap]:
    with congestion.ParameterMap() as opened:
        yield opened


@pytest.fixture
def link() -> Iterator[Link]:
    """100 ms round trip, no rate, no loss, an ACK for every segment."""
    with long_link(0.05) as path:
        yield path
