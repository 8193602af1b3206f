"""How many data connections get by with the buffers that a machine grants."""

from __future__ import annotations

from tuning.model import Link
from tuning.planning import buffer_bytes
from xftp.protocol.options import MULT_LIMIT


def fewest_connections(link: Link, ceiling_bytes: int) -> int | None:
    """Give the fewest connections whose buffers stay within a ceiling; None: no number does."""
    counts = range(1, MULT_LIMIT + 1)
    return next((count for count in counts if buffer_bytes(link, count) <= ceiling_bytes), None)
