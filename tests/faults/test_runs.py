"""Real programs, and one thing that goes wrong: a sample of what `make faults` runs."""

from __future__ import annotations

import pytest

from .running import run
from .scenario import Scenario, campaign, parse
from .support import allowed_here

SEED = 1997
COUNT = 30

SAMPLE = campaign(SEED, COUNT, allowed_here(with_long=False))


FOUND = [
    # Inserted bytes made the file on the server longer than the hash that was compared.
    "fault=insert direction=up connections=1 size=186174 moment=0.0 seed=3217070090",
    # What TLS could not send any more broke the end of the daemon's session.
    "fault=control-closed direction=up connections=1 size=639078 moment=0.0542 seed=3912251867"
    " tls=1",
    # The control connection was gone, and was asked for its round-trip time.
    "fault=control-reset direction=down connections=8 size=2196844 moment=0.2487 seed=3903994065"
    " passive=0 retries=3",
    # The same within TLS, where the connection that is gone has no socket.
    "fault=kill-daemon direction=up connections=4 size=313193 moment=0.0 seed=2102704219 tls=1",
    # A longer file took the place of the one that came, which was mended to the other's beginning.
    "fault=source-replaced direction=down connections=1 size=115252 moment=0.9358 seed=2354080461",
    # A gateway held more for a slow link than connections were waited for.
    "fault=control-closed direction=down connections=8 size=1763083 moment=0.3 seed=3500870874"
    " passive=0 slow=1",
    # All connections were cut within their TLS handshakes, and not dialled again.
    "fault=reset-all direction=down connections=8 size=29030 moment=0.0076 seed=907840729 tls=1",
]
"""Runs that have found a bug."""


@pytest.mark.parametrize("scenario", SAMPLE, ids=str)
async def test_nothing_is_lost(scenario: Scenario) -> None:
    outcome = await run(scenario)
    assert not outcome.problems


@pytest.mark.parametrize("line", FOUND)
async def test_what_was_found(line: str) -> None:
    outcome = await run(parse(line))
    assert outcome.happened
    assert not outcome.problems


async def test_wrong_bytes_would_be_seen() -> None:
    """Without a comparison of hashes nobody but we can see a flipped bit."""
    outcome = await run(Scenario("flip", "down", 1, 500_000, 0.5, 3, verify=False))
    assert outcome.happened
    assert outcome.statuses == [0]
    assert any("wrong bytes" in problem for problem in outcome.problems)
