"""What is lost after its transmission: one model for each loss of `links`.

A model is asked once for every transmitted packet, in order. Randomness comes in as a function
that gives numbers evenly spread over [0, 1).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

from mininet_topos import links

Uniform = Callable[[], float]


class LossModel(Protocol):
    """Decides the fate of one packet after the other."""

    def loses(self, bits: int) -> bool:
        """Tell whether the next packet, of so many bits, is lost."""


def loss_model(loss: links.Loss | None, uniform: Uniform) -> LossModel | None:
    """Give the model of a loss, at its begin; None: nothing is lost."""
    match loss:
        case None:
            return None
        case links.PacketLoss():
            return RandomPackets(loss.probability, uniform)
        case links.BitErrors():
            return RandomBits(loss.rate, uniform)
        case links.ErrorBursts():
            return Bursts(loss)
        case links.GilbertElliott():
            return TwoStates(loss, uniform)


def packet_error_rate(bit_error_rate: float, bits: int) -> float:
    """Give PER = 1 - (1 - BER)^bits, exact also where 1 - BER rounds to 1."""
    if bit_error_rate >= 1:
        return 1.0 if bits else 0.0
    return -math.expm1(bits * math.log1p(-bit_error_rate))


class RandomPackets:
    """Every packet with the same probability."""

    def __init__(self, probability: float, uniform: Uniform) -> None:
        self._probability = probability
        self._uniform = uniform

    def loses(self, bits: int) -> bool:
        """Tell whether the next packet is lost."""
        return self._uniform() < self._probability


class RandomBits:
    """Every bit with the same probability, and with a bit its packet."""

    def __init__(self, rate: float, uniform: Uniform) -> None:
        self._rate = rate
        self._uniform = uniform
        self._probabilities: dict[int, float] = {}

    def loses(self, bits: int) -> bool:
        """Tell whether the next packet is lost."""
        probability = self._probabilities.get(bits)
        if probability is None:
            probability = self._probabilities[bits] = packet_error_rate(self._rate, bits)
        return self._uniform() < probability


class Bursts:
    """Wrong bits k * every_bits ... k * every_bits + length_bits - 1, for k = 1, 2, ..."""

    def __init__(self, bursts: links.ErrorBursts) -> None:
        self._every_bits = bursts.every_bits
        self._length_bits = bursts.length_bits
        self._passed_bits = bursts.passed_bits

    def loses(self, bits: int) -> bool:
        """Tell whether the next packet has a bit in a burst."""
        begin = self._passed_bits
        self._passed_bits = end = begin + bits
        first_not_over = max(1, (begin - self._length_bits) // self._every_bits + 1)
        return first_not_over * self._every_bits < end


class TwoStates:
    """Gilbert and Elliott's Markov chain, one step per packet."""

    def __init__(self, chain: links.GilbertElliott, uniform: Uniform) -> None:
        self._change = {False: chain.p_good_to_bad, True: chain.p_bad_to_good}
        self._loss = {False: chain.loss_good, True: chain.loss_bad}
        self._uniform = uniform
        self._bad = False

    def loses(self, bits: int) -> bool:
        """Tell whether the next packet is lost."""
        if self._uniform() < self._change[self._bad]:
            self._bad = not self._bad
        return self._uniform() < self._loss[self._bad]
