"""What a receiver tells the sender on the data connections themselves: docs/protocol.md, Replace.

    receipt = 8 bytes, unsigned, most significant first

The number of bytes that the receiver has taken from this connection, or ALL_HELD once it holds
every record, whichever connections they came over. The acknowledgments of TCP do not tell that: a
proxy on the way (RFC 3135) acknowledges what it has not delivered yet.
"""

from __future__ import annotations

from xftp.errors import PeerError

RECEIPT_BYTES = 8

ALL_HELD = 2**64 - 1
"""The receipt for everything."""


def format_receipt(count: int) -> bytes:
    """Write a receipt for `count` bytes, or ALL_HELD."""
    return count.to_bytes(RECEIPT_BYTES, "big")


STEADY_SHARE = 0.75
"""Of the last looks, those at which something had come: less, and silence is nothing unusual."""

REMIND_RTTS = 0.5
REMIND_SHARE = 0.25
"""Between two reminders: so many round-trip times, and this share of the silence so far."""

_LOOKS = 8


class Reminders:
    """When receipts are told again: while nothing comes any more, though it came steadily.

    After an outage they are the first that the sender hears. In the loss state of TCP any segment
    of the peer's lets Linux send again what its window takes; otherwise it waits for its doubled
    time-out, as long again as the outage was, and longer.
    """

    def __init__(self) -> None:
        self._steadiness = 0.0
        self._reminds = False
        self._looked_at = self._told_at = 0.0

    def are_due(self, now: float, heard_at: float, rtt_s: float) -> bool:
        """Look, at intervals, whether to tell again. heard_at: when something came last."""
        came = heard_at >= self._looked_at
        self._looked_at = now
        self._steadiness += (came - self._steadiness) / _LOOKS
        if came:
            self._told_at = heard_at
            self._reminds = self._steadiness > STEADY_SHARE
            return False
        pause_s = max(REMIND_RTTS * rtt_s, REMIND_SHARE * (now - heard_at))
        if not self._reminds or now - self._told_at < pause_s:
            return False
        self._told_at = now
        return True


class ReceiptReader:
    """Reads the receipts of one connection, however they are cut up on the way."""

    def __init__(self) -> None:
        self.count = 0
        """Bytes that have arrived, by the latest receipt."""
        self.all_held = False
        """Whether everything has."""
        self._rest = b""

    def feed(self, data: bytes, sent_bytes: int) -> None:
        """Take what arrived. Raises PeerError for more than the `sent_bytes` bytes sent, or less
        than before."""
        data = self._rest + data
        end = len(data) - len(data) % RECEIPT_BYTES
        for at in range(0, end, RECEIPT_BYTES):
            count = int.from_bytes(data[at : at + RECEIPT_BYTES], "big")
            if count == ALL_HELD:
                self.all_held = True
            elif self.count <= count <= sent_bytes:
                self.count = count
            else:
                raise PeerError(f"a receipt for {count} bytes came where {sent_bytes} were sent")
        self._rest = data[end:]
