"""Losses against their theory."""

from __future__ import annotations

import math
import random
from decimal import Decimal, localcontext

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mininet_topos.emulator.loss import LossModel, loss_model, packet_error_rate
from mininet_topos.links import BitErrors, ErrorBursts, GilbertElliott, Loss, PacketLoss

PACKETS = 100_000
BITS = 12_000


def model(loss: Loss, seed: int = 1) -> LossModel:
    made = loss_model(loss, random.Random(seed).random)
    assert made is not None
    return made


def count(loss: Loss, packets: int = PACKETS, bits: int = BITS, seed: int = 1) -> int:
    chosen = model(loss, seed)
    return sum(chosen.loses(bits) for _ in range(packets))


def assert_binomial(lost: int, packets: int, probability: float) -> None:
    """Within four standard deviations: 1 in 16,000 seeds would not be, and the seed is fixed."""
    deviation = math.sqrt(packets * probability * (1 - probability))
    assert abs(lost - packets * probability) <= 4 * deviation


@pytest.mark.parametrize("probability", [0.0, 1e-3, 0.1, 0.5, 1.0])
def test_packets_are_lost_with_their_probability(probability: float) -> None:
    assert_binomial(count(PacketLoss(probability=probability)), PACKETS, probability)


@pytest.mark.parametrize("rate", [0.0, 1e-9, 1e-7, 1e-6, 1e-5, 1e-3, 1.0])
@pytest.mark.parametrize("bits", [320, 12_000])
def test_the_packet_error_rate_is_exact(rate: float, bits: int) -> None:
    with localcontext() as context:
        context.prec = 60
        expected = 1 - (1 - Decimal(rate)) ** bits
    assert packet_error_rate(rate, bits) == pytest.approx(float(expected), rel=1e-12)


@pytest.mark.parametrize(("rate", "bits"), [(1e-5, 12_000), (1e-6, 12_000), (1e-4, 320)])
def test_bit_errors_lose_packets_by_their_size(rate: float, bits: int) -> None:
    expected = 1 - (1 - rate) ** bits
    assert_binomial(count(BitErrors(rate=rate), bits=bits), PACKETS, expected)


def test_bit_errors_judge_each_size_by_itself() -> None:
    mixed = model(BitErrors(rate=1e-4))
    lost = {320: 0, 12_000: 0}
    for _ in range(20_000):
        for bits in lost:
            lost[bits] += mixed.loses(bits)
    for bits, number in lost.items():
        assert_binomial(number, 20_000, packet_error_rate(1e-4, bits))


@settings(deadline=None)
@given(
    every=st.integers(1, 60),
    length=st.integers(1, 60),
    passed=st.integers(0, 100),
    sizes=st.lists(st.integers(1, 40), max_size=40),
)
def test_a_burst_hits_exactly_the_packets_that_have_its_bits(
    every: int, length: int, passed: int, sizes: list[int]
) -> None:
    """Compared with looking at every bit."""
    length = min(length, every)
    bursts = model(ErrorBursts(every_bits=every, length_bits=length, passed_bits=passed))
    begin = passed
    for size in sizes:
        wrong = any(bit >= every and bit % every < length for bit in range(begin, begin + size))
        assert bursts.loses(size) is wrong
        begin += size


def test_the_bursts_of_the_text() -> None:
    """One burst of 4000 bits every 10^6 bits hits one or two of 4416-bit segments."""
    bursts = model(ErrorBursts(every_bits=10**6, length_bits=4000))
    lost = [number for number in range(1000) if bursts.loses(4416)]
    assert lost[:4] == [226, 227, 452, 453]  # bits 998016...1002431; 1000000 and 2000000 begin
    assert sum(begin == lost[i] + 1 for i, begin in enumerate(lost[1:])) <= len(lost) / 2


def test_gilbert_and_elliott_lose_their_share_in_runs_of_their_length() -> None:
    chain = GilbertElliott(p_good_to_bad=0.01, p_bad_to_good=0.2)
    chosen = model(chain)
    fates = [chosen.loses(BITS) for _ in range(PACKETS)]
    runs = [run for run in "".join("x" if lost else " " for lost in fates).split() if run]
    mean_run = sum(map(len, runs)) / len(runs)
    # Runs are geometric: mean 1/p, standard deviation sqrt(1 - p)/p.
    assert abs(mean_run - 5) <= 4 * math.sqrt(0.8) / 0.2 / math.sqrt(len(runs))
    # The variance of the share is that of independent packets times (1 + r)/(1 - r), r = 0.79.
    share = chain.mean_loss
    deviation = math.sqrt(share * (1 - share) / PACKETS * 1.79 / 0.21)
    assert abs(sum(fates) / PACKETS - share) <= 4 * deviation


def test_gilbert_and_elliott_have_losses_in_both_states() -> None:
    chain = GilbertElliott(p_good_to_bad=1, p_bad_to_good=1, loss_good=0, loss_bad=1)
    chosen = model(chain)
    assert [chosen.loses(8) for _ in range(6)] == [True, False] * 3


@pytest.mark.parametrize(
    "loss", [PacketLoss(probability=0.1), BitErrors(rate=1e-5), GilbertElliott(
        p_good_to_bad=0.1, p_bad_to_good=0.5)],
    ids=lambda loss: type(loss).__name__,
)  # fmt: skip
def test_a_seed_repeats_its_losses(loss: Loss) -> None:
    def fates(seed: int) -> list[bool]:
        chosen = model(loss, seed)
        return [chosen.loses(BITS) for _ in range(500)]

    assert fates(7) == fates(7)
    assert fates(7) != fates(8)


def test_no_loss_needs_no_model() -> None:
    assert loss_model(None, random.random) is None
