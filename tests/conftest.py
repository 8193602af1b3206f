"""What holds for all tests."""

from __future__ import annotations

import signal

from hypothesis import HealthCheck, settings

# A shell that starts the tests in the background lets them ignore Ctrl-C, and their children too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A busy machine is no bug: what generated tests show does not depend on how long they take.
settings.register_profile("xftp", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("xftp")
