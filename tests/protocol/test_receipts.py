"""What the receiver tells the sender."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xftp.errors import PeerError
from xftp.protocol.receipts import ALL_HELD, ReceiptReader, format_receipt


@given(st.lists(st.integers(0, 2**40)), st.integers(1, 20), st.booleans())
def test_receipts_are_read_however_they_are_cut(
    counts: list[int], piece: int, all_held: bool
) -> None:
    counts = sorted(counts)
    stream = b"".join(format_receipt(count) for count in counts)
    if all_held:
        stream += format_receipt(ALL_HELD)
    reader = ReceiptReader()
    for at in range(0, len(stream), piece):
        reader.feed(stream[at : at + piece], 2**40)
    assert reader.count == (counts[-1] if counts else 0)
    assert reader.all_held == all_held


@pytest.mark.parametrize("counts", [[11], [5, 4]])
def test_impossible_receipts_are_an_error(counts: list[int]) -> None:
    reader = ReceiptReader()
    with pytest.raises(PeerError, match="a receipt for"):
        reader.feed(b"".join(map(format_receipt, counts)), 10)
