"""When a write is done at once, and the rate limit's arithmetic."""

from __future__ import annotations

import pytest

from xftp.transport.disk import FIRST_RETRY_S, SLOW_S, Patience
from xftp.transport.ratelimit import BURST_S, RateLimit


@pytest.mark.parametrize("kind", ["nfs4", "fuse", "cifs", ""])
def test_file_systems_that_may_hang_use_threads(kind: str) -> None:
    assert not Patience(kind).allows(0.0)


def test_slow_disk_goes_to_threads_for_longer_and_longer() -> None:
    patience = Patience("ext4")
    assert patience.allows(0.0)
    patience.took(SLOW_S / 2, 1.0)
    assert patience.allows(1.0)
    patience.took(2 * SLOW_S, 2.0)
    assert not patience.allows(2.0 + 0.9 * FIRST_RETRY_S)
    assert patience.allows(2.0 + FIRST_RETRY_S)
    patience.took(2 * SLOW_S, 10.0)
    assert not patience.allows(10.0 + 1.9 * FIRST_RETRY_S)
    assert patience.allows(10.0 + 2 * FIRST_RETRY_S)


def test_rate_limit_holds_over_time() -> None:
    limit = RateLimit(1000.0)
    now, moved = 0.0, 0
    while now < 60:
        moved += 70
        now += limit.spend(70, now) + 1e-4
    assert moved == pytest.approx(1000 * 60, rel=0.01)


def test_rate_limit_gives_no_credit_for_a_long_pause() -> None:
    limit = RateLimit(1000.0)
    limit.spend(1, 0.0)
    assert limit.spend(int(1000 * BURST_S) + 100, 1000.0) == pytest.approx(0.1)


def test_a_slow_write_to_memory_only_waited_for_the_processor() -> None:
    patience = Patience("tmpfs")
    patience.took(10 * SLOW_S, 100.0)
    assert patience.allows(100.0)
