"""ADaLR's receive window at the receiving end."""

from __future__ import annotations

import pytest

from tuning import SocketTuning, TuningError, granted
from tuning.adalr import receive_window_bytes, scaling

from .support import connected


@pytest.mark.parametrize(
    ("rtt_s", "rho"), [(0.001, 1), (0.25, 15), (0.52, 31.2), (1.0, 60), (3.0, 60)]
)
def test_scaling(rtt_s: float, rho: float) -> None:
    assert scaling(rtt_s) == pytest.approx(rho)


@pytest.mark.parametrize(
    ("rtt_s", "window_bytes"),
    [
        (0.02, 65_535),
        (0.2499, 65_535),
        (0.25, 65_535 + 5_475),  # 0.25 x 15 x 1460
        (0.52, 65_535 + 11_388),  # 0.25 x 31.2 x 1460: the thesis's satellite
        (2.0, 65_535 + 21_900),
    ],
)
def test_the_window_of_a_long_path(rtt_s: float, window_bytes: int) -> None:
    assert receive_window_bytes(65_535, rtt_s, 1460) == window_bytes


def test_a_receiver_takes_it() -> None:
    window_bytes = receive_window_bytes(65_535, 0.52, 1460)
    receiver = SocketTuning(window_clamp_bytes=window_bytes, receive_buffer_bytes=200_000)
    with connected(client=receiver) as pair:
        assert receiver.differences(pair.client) == ()
        assert granted(pair.client).window_clamp_bytes == window_bytes


@pytest.mark.parametrize(
    "values", [(0, 0.5, 1460), (65_535, 0, 1460), (65_535, float("nan"), 1460), (65_535, 0.5, 0)]
)
def test_what_cannot_be_meant(values: tuple[int, float, int]) -> None:
    with pytest.raises(TuningError):
        receive_window_bytes(*values)
