"""What the tests of addresses share."""

from __future__ import annotations

from hypothesis import strategies as st

V4 = "132.235.34.34"

BAD_PORTS = [
    "",
    "0",
    "00000",
    "65536",
    "+5",
    "-5",
    " 5",
    "5 ",
    "1_0",
    "\u0665",
    "²",
    "5\n",
    "1" * 5000,
]

ports = st.integers(1, 65535)
