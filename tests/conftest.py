"""What holds for all tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# A busy machine is no bug: what generated tests show does not depend on how long they take.
settings.register_profile("xftp", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("xftp")
