"""Which record goes next."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from xftp.protocol.striping import BatchSize, Striping


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=5),
    st.lists(st.integers(1, 9), min_size=1),
)
def test_every_record_is_handed_out_once_in_order(
    ranges: list[tuple[int, int]], limits: list[int]
) -> None:
    striping = Striping(ranges)
    given_out: list[int] = []
    turn = 0
    while (run := striping.take(limit := limits[turn % len(limits)])) is not None:
        first, count = run
        assert 1 <= count <= limit
        given_out += range(first, first + count)
        turn += 1
    assert given_out == [n for start, end in ranges for n in range(start, end)]
    assert striping.is_exhausted


def test_batches_grow_and_shrink() -> None:
    batch = BatchSize(64)
    sizes = []
    for _ in range(8):
        sizes.append(batch.records)
        batch.took_all()
    assert sizes == [1, 2, 4, 8, 16, 32, 64, 64]
    batch.took(5)
    assert batch.records == 5
    batch.took(0)
    assert batch.records == 1
